variable "manifest" {
  description = "A topic's manifest."
  type        = string
}

# Mermaid text, for a page of documentation.
output "picture" {
  value = provider::redeliver::render_graph(var.manifest)
}
