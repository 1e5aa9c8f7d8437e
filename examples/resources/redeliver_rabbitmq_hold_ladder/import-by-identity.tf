import {
  to = redeliver_rabbitmq_hold_ladder.orders
  identity = {
    vhost      = "/"
    topic      = "orders"
    convention = "rabbitkit" # redeliver unless it is said, whatever the provider's default is
  }
}
