# terraform query -generate-config-out=found.tf
list "redeliver_rabbitmq_dead_letter_queue" "all" {
  provider         = redeliver
  include_resource = true
}

# What applications of the shove library made in another vhost.
list "redeliver_rabbitmq_dead_letter_queue" "shove" {
  provider = redeliver

  config {
    vhost      = "shop"
    convention = "shove"
  }
}
