variable "name" {
  description = "Name of the queue, without .fifo."
  type        = string
}

variable "visibility_timeout_seconds" {
  description = "Longer than a handler takes."
  type        = number
  default     = 60
}

variable "retention_seconds" {
  description = "Time to repair a consumer; 14 days is the maximum."
  type        = number
  default     = 1209600
}

variable "max_receive_count" {
  description = "At least 10: restarts of consumers raise the count of innocent messages."
  type        = number
  default     = 10

  validation {
    condition     = var.max_receive_count >= 10 && var.max_receive_count <= 1000
    error_message = "max_receive_count must be 10 to 1000."
  }
}

variable "kms_key_id" {
  description = "Your own KMS key: its ARN. Null means SSE-SQS, which needs no permissions."
  type        = string
  default     = null
}

variable "alarm_actions" {
  description = "ARNs that hear of the alarms, for example of an SNS topic. Empty means no alarms."
  type        = list(string)
  default     = []
}

variable "oldest_message_seconds" {
  description = "The alarm for late consumers: age of the oldest message."
  type        = number
  default     = 900
}
