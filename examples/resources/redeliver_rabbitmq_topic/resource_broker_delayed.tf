# Needs RabbitMQ 4.3: the queue itself delays a retried message, by 5s, 10s,
# 15s and so on up to 2m.
resource "redeliver_rabbitmq_dead_letter_queue" "emails" { topic = "emails" }

resource "redeliver_rabbitmq_topic" "emails" {
  name              = "emails"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.emails.name
  retry             = { strategy = "broker_delayed", delay_min = "5s", delay_max = "2m" }
}
