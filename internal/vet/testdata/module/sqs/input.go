package sqs

type SendMessageInput struct {
	QueueUrl, MessageBody, MessageGroupId, MessageDeduplicationId *string
	DelaySeconds                                                  int32
}

func (*Client) SendMessage(*SendMessageInput) error { return nil }
