resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = "orders" }

data "redeliver_rabbitmq_queue" "dead_letters" {
  name = redeliver_rabbitmq_dead_letter_queue.orders.name
}

# A warning in every plan while there are dead letters.
check "no_dead_letters" {
  assert {
    condition     = try(data.redeliver_rabbitmq_queue.dead_letters.messages.total, 0) == 0
    error_message = "Messages of orders failed for good: look into ${data.redeliver_rabbitmq_queue.dead_letters.name}."
  }
}
