# VHOST/SOURCE/DESTINATION_TYPE/DESTINATION, percent-encoded, with the routing key and the arguments (JSON) as parameters:
# '%2F/billing.events/queue/invoices?arguments=%7B%22country%22%3A%22PT%22%2C%22priority%22%3A5%2C%22x-match%22%3A%22all%22%7D'
terraform import redeliver_rabbitmq_binding.orders '%2F/amq.topic/queue/orders-dlq?routing_key=failed.order.%2A'
