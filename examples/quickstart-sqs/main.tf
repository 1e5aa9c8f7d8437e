# One topic on Amazon SQS: its work queue, and the dead-letter queue to which SQS itself moves what failed for good, so
# that a consumer sends nothing anywhere.
terraform {
  required_providers {
    redeliver = { source = "redeliver/redeliver" }
  }
}

# Region and credentials come from where every AWS SDK looks for them: AWS_REGION, AWS_PROFILE and so on. An emulator is
# named by AWS_ENDPOINT_URL_SQS, and needs AWS_ACCOUNT_ID.
provider "redeliver" {}

variable "delays" {
  description = "How long a message waits, invisible in its queue, before each retry; the last one repeats."
  type        = list(string)
  default     = ["5s", "30s", "2m"]
}

locals { topic = "orders" }

resource "redeliver_sqs_dead_letter_queue" "orders" { topic = local.topic }

resource "redeliver_sqs_topic" "orders" {
  name               = local.topic
  dead_letter_queue  = redeliver_sqs_dead_letter_queue.orders.name
  retry              = { max_retries = 3, delays = var.delays }
  handler_timeout    = "20s"
  visibility_timeout = "30s"
  tags               = { team = "shop" }

  acknowledge_warnings = ["few_receives"] # every receive counts as a retry, one after Defer too: meant
}

output "manifest" {
  description = "What a consumer binds to."
  value       = redeliver_sqs_topic.orders.manifest
}

output "consumer_policy" {
  description = "What a consumer's role needs, and nothing more."
  value       = provider::redeliver::build_iam_policy(redeliver_sqs_topic.orders.manifest, "consumer").document
}
