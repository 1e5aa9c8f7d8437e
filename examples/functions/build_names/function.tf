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
