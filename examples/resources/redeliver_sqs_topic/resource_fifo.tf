# The messages of a group stay in order, also while one of them is retried. All queues of the topic are FIFO queues.
resource "redeliver_sqs_dead_letter_queue" "ledger" {
  topic = "ledger" # the queue is called ledger-dlq.fifo
  fifo  = true
}

resource "redeliver_sqs_topic" "ledger" {
  name                        = "ledger" # the queue is called ledger.fifo
  fifo                        = true
  dead_letter_queue           = redeliver_sqs_dead_letter_queue.ledger.name
  retry                       = { max_retries = 5, delays = ["1s", "10s"] }
  content_based_deduplication = true
  deduplication_scope         = "messageGroup"
  throughput_limit            = "perMessageGroupId"
}
