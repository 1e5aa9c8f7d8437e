# VHOST/TOPIC, percent-encoded: the default vhost / is %2F. Another convention is named as a parameter:
# '%2F/orders?convention=shove&consumer_group=eu'
terraform import redeliver_rabbitmq_topic.orders '%2F/orders'
