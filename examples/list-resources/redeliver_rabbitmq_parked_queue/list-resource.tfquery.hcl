# terraform query -generate-config-out=found.tf
list "redeliver_rabbitmq_parked_queue" "all" {
  provider         = redeliver
  include_resource = true
}

# What applications of the acemq library made in another vhost.
list "redeliver_rabbitmq_parked_queue" "acemq" {
  provider = redeliver

  config {
    vhost      = "shop"
    convention = "acemq"
  }
}
