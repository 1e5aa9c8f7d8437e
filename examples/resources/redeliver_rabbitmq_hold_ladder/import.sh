# VHOST/TOPIC, percent-encoded: the default vhost / is %2F. The tiers are recognised by their names. Where a
# convention numbers its hold queues (rabbitkit) and one is missing, the delays of all of them are said, and the next apply makes it:
# '%2F/orders?convention=rabbitkit&delays=1s,5s,30s'
terraform import redeliver_rabbitmq_hold_ladder.orders '%2F/orders'
