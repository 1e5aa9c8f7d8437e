import {
  to = redeliver_rabbitmq_exchange.events
  identity = {
    vhost = "/"
    name  = "shop.events"
  }
}
