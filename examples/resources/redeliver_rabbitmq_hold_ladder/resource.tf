# The queues orders-hold-5s, orders-hold-30s and orders-hold-120s.
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic  = "orders"
  delays = ["5s", "30s", "2m"]
}
