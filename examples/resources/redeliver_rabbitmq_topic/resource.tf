# The least: retries wait in the consumer, which needs read permission only.
resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = "orders" }

resource "redeliver_rabbitmq_topic" "orders" {
  name              = "orders"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.orders.name
  retry             = { delays = ["1s", "10s", "1m"] }
}
