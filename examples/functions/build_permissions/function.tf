variable "manifest" {
  description = "A topic's manifest."
  type        = string
}

# { configure = "^$", write = "^$", read = "^orders$", notes = [] }
output "consumer" {
  value = provider::redeliver::build_permissions(var.manifest, "consumer")
}
