# terraform query -generate-config-out=found.tf
list "redeliver_rabbitmq_topic" "all" {
  provider         = redeliver
  include_resource = true
}

# What applications of the shove library made in another vhost.
list "redeliver_rabbitmq_topic" "shove" {
  provider = redeliver

  config {
    vhost      = "shop"
    convention = "shove"
  }
}
