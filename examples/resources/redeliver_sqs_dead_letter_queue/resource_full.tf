# A name of its own, a key of the account's, and tags.
resource "redeliver_sqs_dead_letter_queue" "invoices" {
  topic              = "invoices"
  name               = "accounting-failed"
  kms_key            = "alias/aws/sqs"
  kms_data_key_reuse = "1h"
  tags               = { team = "accounting" }
}

# One of a queue that Terraform does not manage: only that queue may redrive to it.
resource "redeliver_sqs_dead_letter_queue" "refunds" {
  topic        = "refunds"
  source_queue = "refunds-legacy"
}
