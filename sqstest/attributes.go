package sqstest

// Deviations from AWS in this file: the queue's attributes are those of F-120 and
// nothing else; names that AWS knows and the queue does not have, such as Policy,
// are left out of the answer as AWS does for an unset one.

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// GetQueueAttributes returns the attributes that were asked for, All for every
// one (F-120), and none if none was. The counts are exact here.
func (q *Queue) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return inProcess(ctx, "GetQueueAttributes", in, requireAttributes, q.attributes)
}

// GetQueueUrl returns the queue's URL if the name, and the owner's account if
// given, are its own.
func (q *Queue) GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	return inProcess(ctx, "GetQueueUrl", in, requireQueueURL, q.queueURL)
}

func (q *Queue) queueURL(_ context.Context, in *sqs.GetQueueUrlInput) (*sqs.GetQueueUrlOutput, error) {
	if in.QueueName == nil {
		return nil, missing("QueueName")
	}
	owner := aws.ToString(in.QueueOwnerAWSAccountId)
	if *in.QueueName != q.config.Name || owner != "" && owner != Account {
		return nil, noSuchQueue()
	}
	return &sqs.GetQueueUrlOutput{QueueUrl: aws.String(q.URL())}, nil
}

func (q *Queue) attributes(_ context.Context, in *sqs.GetQueueAttributesInput) (*sqs.GetQueueAttributesOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	known := types.QueueAttributeName("").Values()
	for _, name := range in.AttributeNames {
		if !slices.Contains(known, name) {
			return nil, invalidAttributeName.because("Unknown Attribute %s.", name)
		}
	}
	all := slices.Contains(in.AttributeNames, types.QueueAttributeNameAll)
	out := &sqs.GetQueueAttributesOutput{}
	for name, value := range q.describe() {
		if all || slices.Contains(in.AttributeNames, name) {
			if out.Attributes == nil {
				out.Attributes = make(map[string]string)
			}
			out.Attributes[string(name)] = value
		}
	}
	return out, nil
}

// describe is F-120. Of a group with messages in flight the others count as
// visible although no receive would return them (F-104).
func (q *Queue) describe() map[types.QueueAttributeName]string {
	q.mu.Lock()
	q.settle(q.now())
	live, hidden, delayed := q.live, len(q.hidden), q.delayed
	q.mu.Unlock()

	created := strconv.FormatInt(q.created.Unix(), 10)
	return map[types.QueueAttributeName]string{
		types.QueueAttributeNameApproximateNumberOfMessages:           strconv.Itoa(live - hidden),
		types.QueueAttributeNameApproximateNumberOfMessagesDelayed:    strconv.Itoa(delayed),
		types.QueueAttributeNameApproximateNumberOfMessagesNotVisible: strconv.Itoa(hidden - delayed),
		types.QueueAttributeNameContentBasedDeduplication:             strconv.FormatBool(!q.config.DisableContentBasedDeduplication),
		types.QueueAttributeNameCreatedTimestamp:                      created,
		types.QueueAttributeNameDeduplicationScope:                    string(q.config.DeduplicationScope),
		types.QueueAttributeNameDelaySeconds:                          seconds(q.config.Delay),
		types.QueueAttributeNameFifoQueue:                             "true",
		types.QueueAttributeNameFifoThroughputLimit:                   "perQueue",
		types.QueueAttributeNameLastModifiedTimestamp:                 created,
		types.QueueAttributeNameMaximumMessageSize:                    strconv.Itoa(q.config.MaximumMessageSize),
		types.QueueAttributeNameMessageRetentionPeriod:                seconds(retention),
		types.QueueAttributeNameQueueArn:                              q.ARN(),
		types.QueueAttributeNameReceiveMessageWaitTimeSeconds:         "0",
		types.QueueAttributeNameSqsManagedSseEnabled:                  "true",
		types.QueueAttributeNameVisibilityTimeout:                     seconds(q.config.VisibilityTimeout),
	}
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }
