package sqstest

// Deviations from AWS in this file:
//   - A queue is made and deleted immediately; AWS asks for a wait of 1 s after
//     making and of 60 s after deleting.
//   - The error about an invalid name has only the recorded part of AWS's message (F-121).
//     The message of QueueDeletedRecently is from AWS's documentation.
//   - CreateQueue returns an existing queue even if the request has other tags.
//   - The errors about a wait of 60 s name the switch that turns the wait off.

import (
	"cmp"
	"context"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	// recreateAfter is the time that the name of a deleted queue stays taken.
	recreateAfter = time.Minute

	maxListedQueues = 1000

	// waitHint follows AWS's text of an error about a wait.
	waitHint = " (Only in this fake: the field NoWaits of sqstest.Config, and sqsfifo serve --no-waits, turn this wait off.)"
)

// missingQueue stands for every queue that does not exist. Its calls fail as AWS's
// calls for an unknown queue do.
var missingQueue = func() *Queue {
	q := newQueue(Config{}.withDefaults(), 0)
	q.gone.Store(true)
	return q
}()

// queueAt returns the queue with the URL, or missingQueue.
func (s *Server) queueAt(queueURL *string) *Queue {
	account, name, ok := queueName(aws.ToString(queueURL))
	return cmp.Or(s.find(account, name, ok), missingQueue)
}

func (s *Server) byARN(arn string) *Queue {
	account, name, ok := nameInARN(arn)
	return s.find(account, name, ok)
}

// find returns the queue with the account and the name, or nil. An empty account is any
// account.
func (s *Server) find(account, name string, ok bool) *Queue {
	if q := s.Queue(name); ok && q != nil && q.is(account, name) {
		return q
	}
	return nil
}

// sourcesOf returns the queues whose dead letters go to q.
func (s *Server) sourcesOf(q *Queue) []*Queue {
	return slices.DeleteFunc(s.Queues(), func(other *Queue) bool { return !other.sendsDeadLettersTo(q) })
}

func (q *Queue) urlAt(base string) string { return base + "/" + q.config.Account + "/" + q.config.Name }

func (s *Server) createQueue(ctx context.Context, in *sqs.CreateQueueInput) (*sqs.CreateQueueOutput, error) {
	if in.QueueName == nil {
		return nil, missing("QueueName")
	}
	name, attributes := *in.QueueName, maps.Clone(in.Attributes)
	value, given := attributes[string(types.QueueAttributeNameFifoQueue)]
	fifo, ok := boolean(value)
	switch {
	case given && !ok:
		return nil, invalidAttributeValue.because("Invalid value for the parameter FifoQueue.")
	case fifo && !queueNameOf(name, true): // rule for names (F-121); the text is unrecorded
		return nil, invalidParameterValue.because("The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length")
	case !queueNameOf(name, fifo):
		return nil, invalidParameterValue.because("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	s.mu.RLock()
	config := s.defaults
	s.mu.RUnlock()
	config.Name, config.Standard, config.DisableContentBasedDeduplication = name, !fifo, true
	config = config.withDefaults()
	next, err := config.settings().withAttributes(attributes, arnOf(Region, config.Account, name), s.byARN)
	if err != nil {
		return nil, err
	}
	// A new queue has its scope immediately: ScopePropagation delays only later changes.
	next.scopeBefore = next.scope
	tags, err := withTags(nil, in.Tags)
	if err != nil {
		return nil, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[name]; q != nil && !q.gone.Load() {
		if err := q.sameAs(next, attributes); err != nil {
			return nil, err
		}
		return &sqs.CreateQueueOutput{QueueUrl: aws.String(q.urlAt(callerOf(ctx).base))}, nil
	}
	if u := s.usage; u != nil && u.bounds.Queues > 0 && len(s.queues) >= u.bounds.Queues {
		return nil, overLimit.because("The fake is at its bound of %d queues.", u.bounds.Queues)
	}
	now := time.Now().Add(s.offset)
	if at, ok := s.deleted[name]; ok && now.Before(at.Add(recreateAfter)) {
		return nil, queueDeletedRecently.because("You must wait 60 seconds after deleting a queue before you can create another with the same name." + waitHint)
	}
	delete(s.deleted, name)
	q := newQueue(config, s.offset)
	q.usage.Store(s.usage)
	q.settings.Store(next)
	q.tags = tags
	s.queues[name] = q
	return &sqs.CreateQueueOutput{QueueUrl: aws.String(q.urlAt(callerOf(ctx).base))}, nil
}

// sameAs returns an error if a requested attribute differs from the attribute of the
// existing queue (F-122).
func (q *Queue) sameAs(asked *settings, attributes map[string]string) error {
	has, wants := q.settings.Load().describe(), asked.describe()
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if n := types.QueueAttributeName(name); has[n] != wants[n] {
			return queueNameExists.because("A queue already exists with the same name and a different value for attribute %s", name)
		}
	}
	return nil
}

func (s *Server) queueURL(ctx context.Context, in *sqs.GetQueueUrlInput) (*sqs.GetQueueUrlOutput, error) {
	if in.QueueName == nil {
		return nil, missing("QueueName")
	}
	owner := aws.ToString(in.QueueOwnerAWSAccountId)
	q := s.Queue(*in.QueueName)
	if q == nil || q.gone.Load() || !q.is(owner, *in.QueueName) {
		return nil, noSuchQueue()
	}
	return &sqs.GetQueueUrlOutput{QueueUrl: aws.String(q.urlAt(callerOf(ctx).base))}, nil
}

func (s *Server) deleteQueue(_ context.Context, in *sqs.DeleteQueueInput) (*sqs.DeleteQueueOutput, error) {
	q := s.queueAt(in.QueueUrl)
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.queues[q.config.Name] != q {
		s.mu.Unlock()
		return nil, noSuchQueue()
	}
	delete(s.queues, q.config.Name)
	now := time.Now().Add(s.offset)
	maps.DeleteFunc(s.deleted, func(_ string, at time.Time) bool { return !now.Before(at.Add(recreateAfter)) })
	if !q.config.NoWaits {
		s.deleted[q.config.Name] = now
	}
	s.mu.Unlock()

	q.gone.Store(true)
	q.countIn(nil)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wakeAll()
	return &sqs.DeleteQueueOutput{}, nil
}

func (s *Server) setAttributes(_ context.Context, in *sqs.SetQueueAttributesInput) (*sqs.SetQueueAttributesOutput, error) {
	if in.QueueUrl == nil {
		return nil, missing("QueueUrl")
	}
	return s.queueAt(in.QueueUrl).setAttributes(in, s.byARN)
}

func (s *Server) listQueues(ctx context.Context, in *sqs.ListQueuesInput) (*sqs.ListQueuesOutput, error) {
	prefix := aws.ToString(in.QueueNamePrefix)
	queues := slices.DeleteFunc(s.Queues(), func(q *Queue) bool { return !strings.HasPrefix(q.config.Name, prefix) })
	urls, token, err := page(ctx, queues, in.MaxResults, in.NextToken)
	if err != nil {
		return nil, err
	}
	return &sqs.ListQueuesOutput{NextToken: token, QueueUrls: urls}, nil
}

func (s *Server) listSources(ctx context.Context, in *sqs.ListDeadLetterSourceQueuesInput) (*sqs.ListDeadLetterSourceQueuesOutput, error) {
	q := s.queueAt(in.QueueUrl)
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	urls, token, err := page(ctx, s.sourcesOf(q), in.MaxResults, in.NextToken)
	if err != nil {
		return nil, err
	}
	return &sqs.ListDeadLetterSourceQueuesOutput{NextToken: token, QueueUrls: urls}, nil
}

// page returns the URLs of one page. A token encodes the last name on the previous page;
// nil means the first page. Without maxResults, the result `next` is always nil.
func page(ctx context.Context, queues []*Queue, maxResults *int32, token *string) (urls []string, next *string, err error) {
	limit := maxListedQueues
	if maxResults != nil {
		limit = int(*maxResults)
	}
	if limit < 1 || limit > maxListedQueues {
		return nil, nil, invalidValue(limit, "MaxResults", "Must be between 1 and 1000, if provided.")
	}
	after, err := base64.URLEncoding.DecodeString(aws.ToString(token))
	if err != nil {
		return nil, nil, invalidParameterValue.because("Invalid or expired next token.")
	}
	for _, q := range queues {
		name := q.config.Name
		if name <= string(after) {
			continue
		}
		if len(urls) == limit {
			if maxResults != nil {
				next = aws.String(base64.URLEncoding.EncodeToString(after))
			}
			break
		}
		urls, after = append(urls, q.urlAt(callerOf(ctx).base)), []byte(name)
	}
	return urls, next, nil
}
