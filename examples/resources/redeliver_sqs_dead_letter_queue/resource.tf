resource "redeliver_sqs_dead_letter_queue" "orders" {
  topic = "orders" # the queue is called orders-dlq
}
