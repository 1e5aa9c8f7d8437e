# Delays computed from a schedule; a ladder takes each delay once.
resource "redeliver_rabbitmq_hold_ladder" "invoices" {
  topic  = "invoices"
  delays = distinct(provider::redeliver::build_schedule("exponential", { attempts = 6, initial = "10s", max = "1m" }))
}

# Each tier split into three queues, with delays 20 % around it.
resource "redeliver_rabbitmq_hold_ladder" "refunds" {
  topic         = "refunds"
  delays        = ["30s", "5m"]
  jitter_shards = 3
  jitter_factor = 0.2
}

# Under shove a sequenced topic is spread over shards, and each has hold queues
# of its own.
resource "redeliver_rabbitmq_hold_ladder" "ledger" {
  topic           = "ledger"
  convention      = "shove"
  delays          = ["5s", "30s"]
  sequence_shards = 8
}
