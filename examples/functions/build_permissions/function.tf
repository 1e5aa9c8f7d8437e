resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = "orders" }

resource "redeliver_rabbitmq_topic" "orders" {
  name              = "orders"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.orders.name
  retry             = { delays = ["5s", "30s", "2m"] }
}

# { configure = "^$", write = "^$", read = "^orders$", notes = [] }
output "consumer" {
  value = provider::redeliver::build_permissions(redeliver_rabbitmq_topic.orders.manifest, "consumer")
}
