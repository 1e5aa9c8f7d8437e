# One topic with everything that belongs to it: a ladder of hold queues, a
# dead-letter queue, a parked queue, and where its messages come from.
terraform {
  required_providers {
    redeliver = { source = "redeliver/redeliver" }
  }
}

# Endpoints and credentials come from the environment: REDELIVER_RABBITMQ_ENDPOINTS,
# REDELIVER_RABBITMQ_USERNAME, REDELIVER_RABBITMQ_PASSWORD.
provider "redeliver" {
  rabbitmq = { vhost = var.vhost }
}

variable "vhost" {
  description = "The virtual host to provision the topology in."
  type        = string
  default     = "/"
}

variable "delays" {
  description = "How long a message waits before each retry; the last one repeats."
  type        = list(string)
  default     = ["5s", "30s", "2m"]
}

locals { topic = "orders" }

resource "redeliver_rabbitmq_exchange" "shop" {
  name = "shop.events"
  type = "topic"
}

resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = local.topic }

resource "redeliver_rabbitmq_parked_queue" "orders" { topic = local.topic }

resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic  = local.topic
  delays = var.delays
}

resource "redeliver_rabbitmq_topic" "orders" {
  name              = local.topic
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.orders.name
  parked_queue      = redeliver_rabbitmq_parked_queue.orders.name
  hold_queues       = redeliver_rabbitmq_hold_ladder.orders.queues
  retry             = { max_retries = 3 }
  park              = "publish"
  bindings          = [{ exchange = redeliver_rabbitmq_exchange.shop.name, routing_key = "order.*" }]
}

output "manifest" {
  description = "What a consumer binds to."
  value       = redeliver_rabbitmq_topic.orders.manifest
}

output "consumer_permissions" {
  description = "What a consumer's user needs, and nothing more."
  value       = provider::redeliver::build_permissions(redeliver_rabbitmq_topic.orders.manifest, "consumer")
}
