# Everything that belongs to a topic: consumers send what failed to the dead-letter queue with the reason, and what nobody
# can read to the parked queue. Messages older than a day are retried no more.
locals { topic = "orders" }

resource "redeliver_sqs_dead_letter_queue" "orders" { topic = local.topic }

resource "redeliver_sqs_parked_queue" "orders" { topic = local.topic }

resource "redeliver_sqs_topic" "orders" {
  name               = local.topic
  dead_letter_queue  = redeliver_sqs_dead_letter_queue.orders.name
  parked_queue       = redeliver_sqs_parked_queue.orders.name
  dead_letter_via    = "send"
  retry              = { max_retries = 10, delays = ["5s", "30s", "2m"], give_up_after = "1d" }
  handler_timeout    = "1m"
  visibility_timeout = "90s"
  retention          = "7d"
  tags               = { team = "shop" }

  # Lets a rule of EventBridge send to the queue.
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "events"
      Effect    = "Allow"
      Principal = { Service = "events.amazonaws.com" }
      Action    = "sqs:SendMessage"
      Resource  = "*"
    }]
  })
}

output "orders_manifest" {
  value = redeliver_sqs_topic.orders.manifest
}
