resource "redeliver_sqs_dead_letter_queue" "orders" { topic = "orders" }

resource "redeliver_sqs_topic" "orders" {
  name              = "orders"
  dead_letter_queue = redeliver_sqs_dead_letter_queue.orders.name
  retry             = { delays = ["5s", "30s", "2m"] }
}
