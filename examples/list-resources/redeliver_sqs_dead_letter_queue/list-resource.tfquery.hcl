# terraform query -generate-config-out=found.tf
list "redeliver_sqs_dead_letter_queue" "all" {
  provider         = redeliver
  include_resource = true
}

# Those of one service, as the shove library names them.
list "redeliver_sqs_dead_letter_queue" "shop" {
  provider = redeliver

  config {
    name_prefix = "shop-"
    convention  = "shove"
  }
}
