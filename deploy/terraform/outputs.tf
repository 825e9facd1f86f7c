output "queue_url" {
  value = aws_sqs_queue.events.url
}

output "queue_arn" {
  value = aws_sqs_queue.events.arn
}

output "parking_queue_url" {
  value = aws_sqs_queue.parking.url
}

output "producer_policy_json" {
  value = data.aws_iam_policy_document.producer.json
}

output "consumer_policy_json" {
  value = data.aws_iam_policy_document.consumer.json
}
