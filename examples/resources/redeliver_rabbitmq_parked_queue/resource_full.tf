# A name of its own, taken over where it is there already and as configured.
resource "redeliver_rabbitmq_parked_queue" "invoices" {
  topic          = "invoices"
  name           = "accounting.unreadable"
  adopt_existing = true
}
