resource "redeliver_rabbitmq_exchange" "shop" {
  name = "shop.events"
  type = "topic"
}
