import {
  to = redeliver_rabbitmq_topic.orders
  identity = {
    vhost          = "/"
    name           = "orders"
    convention     = "shove" # redeliver unless it is said, whatever the provider's default is
    consumer_group = "eu"
  }
}
