# The queue's name, URL or ARN, with ?convention=...&consumer_group=... where the convention is another than redeliver.
terraform import redeliver_sqs_topic.orders orders
