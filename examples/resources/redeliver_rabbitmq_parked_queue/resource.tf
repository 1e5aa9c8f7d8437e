resource "redeliver_rabbitmq_parked_queue" "orders" {
  topic = "orders" # the queue is called orders-parked
}
