resource "aws_cloudwatch_metric_alarm" "parked" {
  count               = length(var.alarm_actions) > 0 ? 1 : 0
  alarm_name          = "${var.name}-parked"
  alarm_description   = "Messages are in the parking queue."
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = aws_sqs_queue.parking.name }
  statistic           = "Maximum"
  period              = 300
  evaluation_periods  = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_actions
  ok_actions          = var.alarm_actions
}

resource "aws_cloudwatch_metric_alarm" "late" {
  count               = length(var.alarm_actions) > 0 ? 1 : 0
  alarm_name          = "${var.name}-late"
  alarm_description   = "The oldest message waits: no consumer runs, a group is blocked, or consumers are too slow."
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateAgeOfOldestMessage"
  dimensions          = { QueueName = aws_sqs_queue.events.name }
  statistic           = "Maximum"
  period              = 300
  evaluation_periods  = 3
  comparison_operator = "GreaterThanThreshold"
  threshold           = var.oldest_message_seconds
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_actions
  ok_actions          = var.alarm_actions
}
