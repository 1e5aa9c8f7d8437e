# A name of its own, and an argument beyond the contract.
resource "redeliver_rabbitmq_dead_letter_queue" "invoices" {
  topic           = "invoices"
  name            = "accounting.failed"
  extra_arguments = { "x-queue-leader-locator" = "balanced" }
}

# A dead-letter queue of a library's convention, whose differences are accepted.
resource "redeliver_rabbitmq_dead_letter_queue" "refunds" {
  topic            = "refunds"
  convention       = "shove"
  consumer_group   = "eu" # the queue is called refunds-eu-dlq
  ignore_arguments = ["x-queue-mode"]
}
