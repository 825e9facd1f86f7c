package sqstest

// Deviations from AWS in this file: the counts are exact; AWS's counts are approximate.

import (
	"context"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// GetQueueAttributes returns the attributes named in the request. The name All stands
// for every attribute (F-120). If the request names no attributes, the answer has none.
// The numbers of messages are exact, not approximate as on AWS.
func (q *Queue) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return inProcess(ctx, "GetQueueAttributes", in, q.attributes)
}

// GetQueueUrl returns the queue's URL if the name is the queue's name and the owner, if
// given, is the queue's account.
func (q *Queue) GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	return NewServer(q).GetQueueUrl(ctx, in)
}

// SetQueueAttributes changes the queue's attributes, all or none.
//
// A change acts immediately, except DeduplicationScope, which acts after
// Config.ScopePropagation (F-033).
//
// A Queue knows no other queues, so it refuses a RedrivePolicy with a dead-letter queue:
// use [Server.SetQueueAttributes]. A queue without a server gets its dead-letter queue from
// its [Config].
func (q *Queue) SetQueueAttributes(ctx context.Context, in *sqs.SetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.SetQueueAttributesOutput, error) {
	return inProcess(ctx, "SetQueueAttributes", in, func(_ context.Context, in *sqs.SetQueueAttributesInput) (*sqs.SetQueueAttributesOutput, error) {
		return q.setAttributes(in, func(string) *Queue { return nil })
	})
}

func (q *Queue) attributes(ctx context.Context, in *sqs.GetQueueAttributesInput) (*sqs.GetQueueAttributesOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	known := types.QueueAttributeName("").Values()
	for _, name := range in.AttributeNames {
		if !slices.Contains(known, name) {
			return nil, unknownAttribute(name)
		}
	}
	all := slices.Contains(in.AttributeNames, types.QueueAttributeNameAll)
	out := &sqs.GetQueueAttributesOutput{}
	for name, value := range q.describe(callerOf(ctx).region) {
		if all || slices.Contains(in.AttributeNames, name) {
			if out.Attributes == nil {
				out.Attributes = make(map[string]string)
			}
			out.Attributes[string(name)] = value
		}
	}
	return out, nil
}

// describe returns the attributes for GetQueueAttributes (F-120). A message counts as
// visible even while an earlier message in flight blocks its group (F-104).
func (q *Queue) describe(region string) map[types.QueueAttributeName]string {
	q.mu.Lock()
	q.settle(q.now())
	live, hidden, delayed, modified := q.live, q.hidden.Len(), q.delayed, q.modified
	out := q.settings.Load().describe()
	q.mu.Unlock()

	out[types.QueueAttributeNameApproximateNumberOfMessages] = strconv.Itoa(live - hidden)
	out[types.QueueAttributeNameApproximateNumberOfMessagesDelayed] = strconv.Itoa(delayed)
	out[types.QueueAttributeNameApproximateNumberOfMessagesNotVisible] = strconv.Itoa(hidden - delayed)
	out[types.QueueAttributeNameCreatedTimestamp] = strconv.FormatInt(q.created.Unix(), 10)
	out[types.QueueAttributeNameLastModifiedTimestamp] = strconv.FormatInt(modified.Unix(), 10)
	out[types.QueueAttributeNameQueueArn] = q.arnIn(region)
	return out
}

func (q *Queue) setAttributes(in *sqs.SetQueueAttributesInput, find func(arn string) *Queue) (*sqs.SetQueueAttributesOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	if in.Attributes == nil {
		return nil, missing("Attributes")
	}
	q.settingsMu.Lock()
	defer q.settingsMu.Unlock()
	// settings.withAttributes may look up other queues, so call it without q.mu.
	before := q.settings.Load()
	next, err := before.withAttributes(in.Attributes, q.ARN(), find)
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	if next.scope != before.scope {
		next.scopeBefore = before.dedupScope(now)
		next.scopeFrom = now.Add(q.config.ScopePropagation)
	}
	q.modified = now
	q.settings.Store(next)
	q.wake()
	return &sqs.SetQueueAttributesOutput{}, nil
}
