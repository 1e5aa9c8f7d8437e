import {
  to = redeliver_sqs_parked_queue.orders
  identity = {
    arn = "arn:aws:sqs:eu-west-1:123456789012:orders-parked"
  }
}
