# What no binding of billing.events takes goes to unrouted.
resource "redeliver_rabbitmq_exchange" "unrouted" {
  name     = "unrouted"
  type     = "fanout"
  internal = true
}

resource "redeliver_rabbitmq_exchange" "billing" {
  name            = "billing.events"
  type            = "headers"
  extra_arguments = { "alternate-exchange" = redeliver_rabbitmq_exchange.unrouted.name }
}
