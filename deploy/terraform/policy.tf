# sqs:SendMessage covers batches. sqs:GetQueueAttributes serves Preflight and the check
# before the first send.
data "aws_iam_policy_document" "producer" {
  statement {
    sid       = "Producer"
    actions   = ["sqs:SendMessage", "sqs:GetQueueAttributes"]
    resources = [aws_sqs_queue.events.arn]
  }

  dynamic "statement" {
    for_each = var.kms_key_id == null ? [] : [var.kms_key_id]
    content {
      sid       = "Key"
      actions   = ["kms:GenerateDataKey"]
      resources = [statement.value]
    }
  }
}

data "aws_iam_policy_document" "consumer" {
  statement {
    sid       = "Consumer"
    actions   = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"]
    resources = [aws_sqs_queue.events.arn]
  }

  statement {
    sid       = "Parking"
    actions   = ["sqs:SendMessage", "sqs:GetQueueAttributes"]
    resources = [aws_sqs_queue.parking.arn]
  }

  dynamic "statement" {
    for_each = var.kms_key_id == null ? [] : [var.kms_key_id]
    content {
      sid       = "Key"
      actions   = ["kms:Decrypt", "kms:GenerateDataKey"] # GenerateDataKey: for the parking queue
      resources = [statement.value]
    }
  }
}
