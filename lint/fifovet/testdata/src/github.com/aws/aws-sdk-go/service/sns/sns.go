// Package sns stands in for the AWS SDK's.
package sns

type SNS struct{}

type MessageAttributeValue struct {
	DataType    *string
	StringValue *string
}

type PublishInput struct {
	TopicArn               *string
	Message                *string
	MessageAttributes      map[string]*MessageAttributeValue
	MessageDeduplicationId *string
	MessageGroupId         *string
}

type PublishOutput struct{}

func (c *SNS) Publish(in *PublishInput) (*PublishOutput, error) { return nil, nil }
