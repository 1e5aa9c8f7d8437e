terraform {
  required_providers {
    redeliver = {
      source = "redeliver/redeliver"
    }
  }
}

variable "rabbitmq_password" {
  type      = string
  sensitive = true
}

provider "redeliver" {
  rabbitmq = {
    endpoints      = ["https://rabbit.example.com:15671"]
    amqp_endpoints = ["amqps://rabbit.example.com:5671"] # optional: exact depths
    username       = "terraform"
    password       = var.rabbitmq_password # or the environment variable REDELIVER_RABBITMQ_PASSWORD
    vhost          = "shop"
  }
}
