resource "redeliver_rabbitmq_exchange" "shop" {
  name = "shop.events"
  type = "topic"
}

resource "redeliver_rabbitmq_exchange" "billing" {
  name            = "billing.events"
  type            = "headers"
  extra_arguments = { "alternate-exchange" = redeliver_rabbitmq_exchange.shop.name }
}
