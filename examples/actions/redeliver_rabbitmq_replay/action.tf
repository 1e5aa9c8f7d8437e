# Terraform 1.14 and later: terraform apply -invoke=action.redeliver_rabbitmq_replay.orders
action "redeliver_rabbitmq_replay" "orders" {
  config {
    manifest = redeliver_rabbitmq_topic.orders.manifest
    limit    = 1000
    rate     = 50
  }
}
