# terraform query -generate-config-out=found.tf
list "redeliver_sqs_parked_queue" "all" {
  provider         = redeliver
  include_resource = true
}

# Those of one service, whose names start alike.
list "redeliver_sqs_parked_queue" "shop" {
  provider = redeliver

  config {
    name_prefix = "shop-"
  }
}
