# terraform query -generate-config-out=exchanges.tf
list "redeliver_rabbitmq_exchange" "all" {
  provider = redeliver

  config {
    vhost = "shop"
  }
}
