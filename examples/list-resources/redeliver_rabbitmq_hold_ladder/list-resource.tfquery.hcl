# terraform query -generate-config-out=found.tf
list "redeliver_rabbitmq_hold_ladder" "all" {
  provider         = redeliver
  include_resource = true
}

# What applications of the shove library made in another vhost.
list "redeliver_rabbitmq_hold_ladder" "shove" {
  provider = redeliver

  config {
    vhost      = "shop"
    convention = "shove"
  }
}
