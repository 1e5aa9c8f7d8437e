resource "redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic = "orders" # the queue is called orders-dlq
}

# A name of its own, and an argument beyond the contract.
resource "redeliver_rabbitmq_dead_letter_queue" "invoices" {
  topic           = "invoices"
  name            = "accounting.failed"
  extra_arguments = { "x-queue-leader-locator" = "balanced" }
}
