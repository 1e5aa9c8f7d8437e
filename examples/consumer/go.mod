module github.com/redeliver/terraform-provider-redeliver/examples/consumer

go 1.26.8

require github.com/redeliver/terraform-provider-redeliver v0.0.0

require github.com/rabbitmq/amqp091-go v1.16.0 // indirect

replace github.com/redeliver/terraform-provider-redeliver => ../..
