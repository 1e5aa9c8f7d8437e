resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = "orders" }

resource "redeliver_rabbitmq_topic" "orders" {
  name              = "orders"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.orders.name
  retry             = { delays = ["1s", "10s", "1m"] }
}

# Where the topic is another team's, the manifest comes from a file that it published: file("orders.json").
data "redeliver_rabbitmq_topology" "orders" {
  manifest = redeliver_rabbitmq_topic.orders.manifest
}

check "orders" {
  assert {
    condition = data.redeliver_rabbitmq_topology.orders.in_order
    error_message = join("\n", [
      for o in data.redeliver_rabbitmq_topology.orders.objects :
      "${o.kind} ${o.name} is ${o.status}: ${join("; ", [for d in o.differences : "${d.key}: ${d.explanation}"])}" if o.status != "present"
    ])
  }
}
