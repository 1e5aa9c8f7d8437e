import {
  to = redeliver_rabbitmq_dead_letter_queue.orders
  identity = {
    vhost      = "/"
    topic      = "orders"
    convention = "shove"     # redeliver unless it is said, whatever the provider's default is
    name       = "graveyard" # where it is not the one that the convention derives
  }
}
