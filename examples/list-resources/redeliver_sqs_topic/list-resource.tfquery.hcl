# terraform query -generate-config-out=found.tf
list "redeliver_sqs_topic" "all" {
  provider         = redeliver
  include_resource = true
}

# Those of one service, as the shove library names them.
list "redeliver_sqs_topic" "shop" {
  provider = redeliver

  config {
    name_prefix = "shop-"
    convention  = "shove"
  }
}
