# VHOST/TOPIC, percent-encoded: the default vhost / is %2F. A name of its own is named as a parameter:
# '%2F/invoices?name=accounting.failed'
terraform import redeliver_rabbitmq_dead_letter_queue.orders '%2F/orders'
