# A FIFO queue for sqsfifo, its parking queue, a policy for producers and one for
# consumers, encryption and alarms. README: docs/guide/queue.md.
terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

resource "aws_sqs_queue" "events" {
  name                              = "${var.name}.fifo"
  fifo_queue                        = true
  content_based_deduplication       = true
  deduplication_scope               = "messageGroup" # with the next line: high throughput
  fifo_throughput_limit             = "perMessageGroupId"
  message_retention_seconds         = var.retention_seconds
  visibility_timeout_seconds        = var.visibility_timeout_seconds
  sqs_managed_sse_enabled           = var.kms_key_id == null ? true : null
  kms_master_key_id                 = var.kms_key_id
  kms_data_key_reuse_period_seconds = var.kms_key_id == null ? null : 300
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.parking.arn
    maxReceiveCount     = var.max_receive_count
  })
}

# Consumers send events here that they cannot handle, and SQS moves messages here that are
# never deleted. The queue of such messages must be FIFO, too.
resource "aws_sqs_queue" "parking" {
  name                              = "${var.name}-parking.fifo"
  fifo_queue                        = true
  content_based_deduplication       = true
  deduplication_scope               = "messageGroup"
  fifo_throughput_limit             = "perMessageGroupId"
  message_retention_seconds         = 1209600 # 14 days, the maximum
  visibility_timeout_seconds        = var.visibility_timeout_seconds
  sqs_managed_sse_enabled           = var.kms_key_id == null ? true : null
  kms_master_key_id                 = var.kms_key_id
  kms_data_key_reuse_period_seconds = var.kms_key_id == null ? null : 300
}
