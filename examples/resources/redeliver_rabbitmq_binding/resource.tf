resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = "orders" }

resource "redeliver_rabbitmq_binding" "orders" {
  source      = "amq.topic"
  destination = redeliver_rabbitmq_dead_letter_queue.orders.name
  routing_key = "failed.order.*"
}
