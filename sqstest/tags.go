package sqstest

// Deviations from AWS in this file: tags with the prefix "aws:" are accepted. The error
// messages about the limits are the fake's own, because no recording shows AWS's
// messages.

import (
	"context"
	"maps"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// The documented limits of tags.
const (
	maxTags     = 50
	maxTagKey   = 128
	maxTagValue = 256
)

// TagQueue adds tags to the queue. A new tag replaces an old tag with the same key. After an
// error, all tags are unchanged.
func (q *Queue) TagQueue(ctx context.Context, in *sqs.TagQueueInput, _ ...func(*sqs.Options)) (*sqs.TagQueueOutput, error) {
	return inProcess(ctx, "TagQueue", in, q.tag)
}

// UntagQueue removes the tags with the given keys. Unknown keys change nothing.
func (q *Queue) UntagQueue(ctx context.Context, in *sqs.UntagQueueInput, _ ...func(*sqs.Options)) (*sqs.UntagQueueOutput, error) {
	return inProcess(ctx, "UntagQueue", in, q.untag)
}

// ListQueueTags returns the queue's tags.
func (q *Queue) ListQueueTags(ctx context.Context, in *sqs.ListQueueTagsInput, _ ...func(*sqs.Options)) (*sqs.ListQueueTagsOutput, error) {
	return inProcess(ctx, "ListQueueTags", in, q.listTags)
}

func (q *Queue) tag(_ context.Context, in *sqs.TagQueueInput) (*sqs.TagQueueOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	if in.Tags == nil {
		return nil, missing("Tags")
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	next, err := withTags(q.tags, in.Tags)
	if err != nil {
		return nil, err
	}
	q.tags = next
	return &sqs.TagQueueOutput{}, nil
}

func withTags(old, more map[string]string) (map[string]string, error) {
	next := make(map[string]string, len(old)+len(more))
	maps.Copy(next, old)
	for key, value := range more {
		if n := utf8.RuneCountInString(key); n < 1 || n > maxTagKey {
			return nil, invalidParameterValue.because("Tag keys must be between 1 and %d characters in length.", maxTagKey)
		}
		if utf8.RuneCountInString(value) > maxTagValue {
			return nil, invalidParameterValue.because("Tag values must be between 0 and %d characters in length.", maxTagValue)
		}
		next[key] = value
	}
	if len(next) > maxTags {
		return nil, invalidParameterValue.because("A queue can have at most %d tags.", maxTags)
	}
	return next, nil
}

func (q *Queue) untag(_ context.Context, in *sqs.UntagQueueInput) (*sqs.UntagQueueOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	if in.TagKeys == nil {
		return nil, missing("TagKeys")
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range in.TagKeys {
		delete(q.tags, key)
	}
	return &sqs.UntagQueueOutput{}, nil
}

func (q *Queue) listTags(_ context.Context, in *sqs.ListQueueTagsInput) (*sqs.ListQueueTagsOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	out := &sqs.ListQueueTagsOutput{}
	if len(q.tags) > 0 {
		out.Tags = maps.Clone(q.tags)
	}
	return out, nil
}
