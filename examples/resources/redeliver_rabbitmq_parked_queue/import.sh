# VHOST/TOPIC, percent-encoded: the default vhost / is %2F.
terraform import redeliver_rabbitmq_parked_queue.orders '%2F/orders'
