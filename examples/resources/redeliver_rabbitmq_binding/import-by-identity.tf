import {
  to = redeliver_rabbitmq_binding.audit
  identity = {
    vhost            = "/"
    source           = "amq.headers"
    destination_type = "queue"
    destination      = "orders"
    arguments        = jsonencode({ "x-match" = "all", kind = "order" })
  }
}
