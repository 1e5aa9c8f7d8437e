locals { topic = "orders" }

resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = local.topic }

resource "redeliver_rabbitmq_parked_queue" "orders" { topic = local.topic }

resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic  = local.topic
  delays = ["5s", "30s", "2m"]
}

# Everything that belongs to a topic: unreadable messages are parked, messages
# older than a day are retried no more.
resource "redeliver_rabbitmq_topic" "orders" {
  name              = local.topic
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.orders.name
  parked_queue      = redeliver_rabbitmq_parked_queue.orders.name
  hold_queues       = redeliver_rabbitmq_hold_ladder.orders.queues
  park              = "publish"
  retry             = { max_retries = 10, give_up_after = "1d" }
  bindings          = [{ exchange = "amq.topic", routing_key = "order.*" }]
}

# The least: retries wait in the consumer, which needs read permission only.
resource "redeliver_rabbitmq_dead_letter_queue" "invoices" { topic = "invoices" }

resource "redeliver_rabbitmq_topic" "invoices" {
  name              = "invoices"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.invoices.name
  retry             = { delays = ["1s", "10s", "1m"], max_retries = 5 }
}

# Messages of one key stay in order, also while one of them is retried.
resource "redeliver_rabbitmq_dead_letter_queue" "ledger" { topic = "ledger" }

resource "redeliver_rabbitmq_topic" "ledger" {
  name              = "ledger"
  sequenced         = true
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.ledger.name
  retry             = { delays = ["1s", "10s"], max_retries = 5 }
}

# RabbitMQ 4.3 and later: the queue itself delays a retried message, by 5s, 10s,
# 15s and so on up to 2m.
resource "redeliver_rabbitmq_dead_letter_queue" "emails" { topic = "emails" }

resource "redeliver_rabbitmq_topic" "emails" {
  name              = "emails"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.emails.name
  retry             = { strategy = "broker_delayed", delay_min = "5s", delay_max = "2m" }
}

output "orders_manifest" {
  value = redeliver_rabbitmq_topic.orders.manifest
}
