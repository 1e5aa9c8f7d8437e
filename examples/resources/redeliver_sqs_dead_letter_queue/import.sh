# The queue's name, URL or ARN. A name that is not derived from the topic's takes the topic: 'accounting-failed?topic=invoices'
terraform import redeliver_sqs_dead_letter_queue.orders orders-dlq
