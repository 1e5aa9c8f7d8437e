import {
  to = redeliver_sqs_dead_letter_queue.invoices
  identity = {
    arn   = "arn:aws:sqs:eu-west-1:123456789012:accounting-failed"
    topic = "invoices" # where the queue's name is not the one that the convention derives
  }
}
