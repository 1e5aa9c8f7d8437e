import {
  to = redeliver_rabbitmq_parked_queue.orders
  identity = {
    vhost = "/"
    topic = "orders"
  }
}
