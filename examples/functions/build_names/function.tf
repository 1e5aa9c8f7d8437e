locals {
  names = provider::redeliver::build_names("orders", "redeliver", { delays = ["500ms", "5s"] })
}

# {
#   work_queue        = "orders"
#   work_queues       = ["orders"]
#   sequence_exchange = null
#   dead_letter_queue = "orders-dlq"
#   parked_queue      = "orders-parked"
#   retry_exchange    = "orders-retry"
#   hold_queues       = ["orders-hold-500ms", "orders-hold-5s"]
# }
output "names" {
  value = local.names
}

# On Amazon SQS, in order: work_queue = "orders.fifo", dead_letter_queue = "orders-dlq.fifo"
output "names_on_sqs" {
  value = provider::redeliver::build_names("orders", "redeliver", { broker = "sqs", fifo = true })
}
