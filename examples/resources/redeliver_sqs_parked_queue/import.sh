# The queue's name, URL or ARN. A name that is not derived from the topic's takes the topic: 'unreadable?topic=orders'
terraform import redeliver_sqs_parked_queue.orders orders-parked
