# VHOST/TOPIC, percent-encoded: the default vhost / is %2F. A convention other than redeliver is named as a parameter,
# whatever the provider's default is:
# '%2F/orders?convention=shove&consumer_group=eu'
terraform import redeliver_rabbitmq_topic.orders '%2F/orders'
