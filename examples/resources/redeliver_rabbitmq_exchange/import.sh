# VHOST/NAME, percent-encoded: the default vhost / is %2F.
terraform import redeliver_rabbitmq_exchange.shop '%2F/shop.events'
