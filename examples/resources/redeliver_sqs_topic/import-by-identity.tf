import {
  to = redeliver_sqs_topic.orders
  identity = {
    arn        = "arn:aws:sqs:eu-west-1:123456789012:orders"
    convention = "shove" # redeliver unless it is said, whatever the provider's default is
  }
}
