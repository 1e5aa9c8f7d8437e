# VHOST/TOPIC, percent-encoded: the default vhost / is %2F. The tiers are recognised by their names.
terraform import redeliver_rabbitmq_hold_ladder.orders '%2F/orders'
