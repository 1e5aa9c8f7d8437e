resource "redeliver_sqs_parked_queue" "orders" {
  topic = "orders" # the queue is called orders-parked
}
