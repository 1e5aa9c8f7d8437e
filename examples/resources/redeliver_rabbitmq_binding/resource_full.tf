resource "redeliver_rabbitmq_exchange" "billing" {
  name = "billing.events"
  type = "headers"
}

resource "redeliver_rabbitmq_dead_letter_queue" "invoices" { topic = "invoices" }

resource "redeliver_rabbitmq_topic" "invoices" {
  name              = "invoices"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.invoices.name
  retry             = { delays = ["10s"] }
}

# Typed arguments: priority is a number on the broker, country a string.
resource "redeliver_rabbitmq_binding" "invoices" {
  source      = redeliver_rabbitmq_exchange.billing.name
  destination = redeliver_rabbitmq_topic.invoices.name
  arguments   = { "x-match" = "all", country = "PT", priority = 5 }
}

# From one exchange to another.
resource "redeliver_rabbitmq_binding" "billing" {
  source           = "amq.topic"
  destination      = redeliver_rabbitmq_exchange.billing.name
  destination_type = "exchange"
  routing_key      = "billing.#"
}
