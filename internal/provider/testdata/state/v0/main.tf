# What terraform.tfstate beside it was applied from, with the provider's first version.

resource "redeliver_rabbitmq_exchange" "events" {
  name            = "shop.events"
  type            = "topic"
  extra_arguments = { "alternate-exchange" = "amq.fanout" }
}

# Everything that belongs to a topic, and every attribute of it.
resource "redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic            = "orders"
  extra_arguments  = { "x-queue-leader-locator" = "balanced" }
  ignore_arguments = ["x-max-length"]
}

resource "redeliver_rabbitmq_parked_queue" "orders" { topic = "orders" }

resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic         = "orders"
  delays        = ["5s", "30s", "2m"]
  jitter_shards = 2
  jitter_factor = 0.2
  timeouts      = { update = "30m" }
}

resource "redeliver_rabbitmq_topic" "orders" {
  name              = "orders"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.orders.name
  parked_queue      = redeliver_rabbitmq_parked_queue.orders.name
  hold_queues       = redeliver_rabbitmq_hold_ladder.orders.queues
  park              = "publish"
  retry             = { strategy = "hybrid", max_retries = 12, hold_from = "20s", give_up_after = "1d", jitter = 0.1 }
  bindings          = [{ exchange = redeliver_rabbitmq_exchange.events.name, routing_key = "order.*" }]
  extra_arguments   = { "x-single-active-consumer" = true }
}

# The least.
resource "redeliver_rabbitmq_dead_letter_queue" "invoices" { topic = "invoices" }

resource "redeliver_rabbitmq_topic" "invoices" {
  name              = "invoices"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.invoices.name
  retry             = { delays = ["1s", "10s"] }
}

# In order.
resource "redeliver_rabbitmq_topic" "ledger" {
  name               = "ledger"
  sequenced          = true
  allow_message_loss = true
  delivery_limit     = 100
  retry              = { max_retries = 0 }
  delete_non_empty   = true
}

# Other conventions.
resource "redeliver_rabbitmq_dead_letter_queue" "mails" {
  topic          = "mails"
  convention     = "shove"
  consumer_group = "eu"
  name           = "the graveyard"
}

resource "redeliver_rabbitmq_hold_ladder" "mails" {
  topic          = "mails"
  convention     = "shove"
  consumer_group = "eu"
  delays         = ["5s"]
}

resource "redeliver_rabbitmq_topic" "mails" {
  name                 = "mails"
  convention           = "shove"
  consumer_group       = "eu"
  dead_letter_queue    = redeliver_rabbitmq_dead_letter_queue.mails.name
  hold_queues          = redeliver_rabbitmq_hold_ladder.mails.queues
  retry                = { strategy = "republish" }
  acknowledge_warnings = ["foreign_dead_end"]
}

resource "redeliver_rabbitmq_dead_letter_queue" "jobs" {
  topic           = "jobs"
  convention      = "rabbitkit"
  work_queue_type = "classic"
}

resource "redeliver_rabbitmq_topic" "jobs" {
  name              = "jobs"
  convention        = "rabbitkit"
  queue_type        = "classic"
  max_priority      = 5
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.jobs.name
  retry             = { delays = ["1s"], last_delay_repeats = true, max_retries = 3 }
}

resource "redeliver_rabbitmq_topic" "stock" {
  name               = "stock"
  convention         = "acemq"
  allow_message_loss = true
  retry              = { delays = ["1s"] }
}

resource "redeliver_rabbitmq_binding" "invoices" {
  source      = "amq.headers"
  destination = redeliver_rabbitmq_topic.invoices.name
  arguments   = { "x-match" = "all", kind = "invoice", version = 2 }
}
