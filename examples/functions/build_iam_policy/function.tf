resource "redeliver_sqs_dead_letter_queue" "orders" { topic = "orders" }

resource "redeliver_sqs_topic" "orders" {
  name              = "orders"
  dead_letter_queue = redeliver_sqs_dead_letter_queue.orders.name
  retry             = { delays = ["5s", "30s", "2m"] }
}

# sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility on the work queue, and nothing else.
output "consumer" {
  value = provider::redeliver::build_iam_policy(redeliver_sqs_topic.orders.manifest, "consumer").document
}
