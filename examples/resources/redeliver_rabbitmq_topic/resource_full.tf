# Everything that belongs to a topic: unreadable messages are parked, messages
# older than a day are retried no more.
locals { topic = "orders" }

resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = local.topic }

resource "redeliver_rabbitmq_parked_queue" "orders" { topic = local.topic }

resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic  = local.topic
  delays = ["5s", "30s", "2m"]
}

resource "redeliver_rabbitmq_topic" "orders" {
  name              = local.topic
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.orders.name
  parked_queue      = redeliver_rabbitmq_parked_queue.orders.name
  hold_queues       = redeliver_rabbitmq_hold_ladder.orders.queues
  park              = "publish"
  retry             = { strategy = "hybrid", max_retries = 10, give_up_after = "1d" }
  bindings          = [{ exchange = "amq.topic", routing_key = "order.*" }]
  extra_arguments   = { "x-queue-leader-locator" = "balanced" }
}

output "orders_manifest" {
  value = redeliver_rabbitmq_topic.orders.manifest
}

# Messages of one key stay in order, also while one of them is retried.
resource "redeliver_rabbitmq_dead_letter_queue" "ledger" { topic = "ledger" }

resource "redeliver_rabbitmq_topic" "ledger" {
  name              = "ledger"
  sequenced         = true
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.ledger.name
  retry             = { delays = ["1s", "10s"], max_retries = 5 }
}
