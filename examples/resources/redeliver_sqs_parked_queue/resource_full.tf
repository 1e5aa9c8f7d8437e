resource "redeliver_sqs_parked_queue" "orders" {
  topic     = "orders"
  retention = "7d"
  tags      = { team = "shop" }
  timeouts  = { create = "10m" }
}
