package sqstest_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// client has the calls for one queue. Both APIs have these calls: the in-process API
// and AWS's wire format.
type client interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessage(context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
	SetQueueAttributes(context.Context, *sqs.SetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.SetQueueAttributesOutput, error)
	PurgeQueue(context.Context, *sqs.PurgeQueueInput, ...func(*sqs.Options)) (*sqs.PurgeQueueOutput, error)
	TagQueue(context.Context, *sqs.TagQueueInput, ...func(*sqs.Options)) (*sqs.TagQueueOutput, error)
	UntagQueue(context.Context, *sqs.UntagQueueInput, ...func(*sqs.Options)) (*sqs.UntagQueueOutput, error)
	ListQueueTags(context.Context, *sqs.ListQueueTagsInput, ...func(*sqs.Options)) (*sqs.ListQueueTagsOutput, error)
	AddPermission(context.Context, *sqs.AddPermissionInput, ...func(*sqs.Options)) (*sqs.AddPermissionOutput, error)
	RemovePermission(context.Context, *sqs.RemovePermissionInput, ...func(*sqs.Options)) (*sqs.RemovePermissionOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
}

// account has the calls for one queue and the calls for several queues. *sqs.Client and
// *sqstest.Server implement account.
type account interface {
	client
	CreateQueue(context.Context, *sqs.CreateQueueInput, ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error)
	DeleteQueue(context.Context, *sqs.DeleteQueueInput, ...func(*sqs.Options)) (*sqs.DeleteQueueOutput, error)
	ListQueues(context.Context, *sqs.ListQueuesInput, ...func(*sqs.Options)) (*sqs.ListQueuesOutput, error)
	ListDeadLetterSourceQueues(context.Context, *sqs.ListDeadLetterSourceQueuesInput, ...func(*sqs.Options)) (*sqs.ListDeadLetterSourceQueuesOutput, error)
	StartMessageMoveTask(context.Context, *sqs.StartMessageMoveTaskInput, ...func(*sqs.Options)) (*sqs.StartMessageMoveTaskOutput, error)
	ListMessageMoveTasks(context.Context, *sqs.ListMessageMoveTasksInput, ...func(*sqs.Options)) (*sqs.ListMessageMoveTasksOutput, error)
	CancelMessageMoveTask(context.Context, *sqs.CancelMessageMoveTaskInput, ...func(*sqs.Options)) (*sqs.CancelMessageMoveTaskOutput, error)
}

var (
	_ account = (*sqs.Client)(nil)
	_ account = (*sqstest.Server)(nil)
	_ client  = (*sqstest.Queue)(nil)
)

// testAccount is the account of one test: a server in process, or a client over HTTP.
type testAccount struct {
	*testing.T
	account
	server *sqstest.Server
}

// accountFact is the test of a fact in FACTS.md that concerns several queues. Its name
// starts with the number of the fact.
type accountFact struct {
	name string
	test func(o testAccount)
}

func holdAccounts(t *testing.T, facts []accountFact) {
	t.Helper()
	for _, f := range facts {
		t.Run(f.name, func(t *testing.T) { bothAccounts(t, f.test) })
	}
}

func bothAccounts(t *testing.T, test func(o testAccount)) {
	t.Helper()
	for _, api := range []struct {
		name string
		open func(s *sqstest.Server) account
	}{
		{"in process", func(s *sqstest.Server) account { return s }},
		{"over HTTP", func(s *sqstest.Server) account {
			return s.Client(func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
		}},
	} {
		t.Run(api.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := sqstest.NewServer()
				test(testAccount{t, api.open(s), s})
			})
		})
	}
}

func (o testAccount) tryCreate(name string, attributes map[string]string) (string, error) {
	out, err := o.CreateQueue(o.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		return "", err
	}
	return *out.QueueUrl, nil
}

// create makes a queue, FIFO if its name ends in ".fifo". The strings after the name are
// alternately names and values of attributes.
func (o testAccount) create(name string, pairs ...string) testQueue {
	o.Helper()
	attributes := map[string]string{}
	if strings.HasSuffix(name, ".fifo") {
		attributes["FifoQueue"] = "true"
		attributes["ContentBasedDeduplication"] = "true"
	}
	for i := 0; i < len(pairs); i += 2 {
		attributes[pairs[i]] = pairs[i+1]
	}
	_, err := o.tryCreate(name, attributes)
	require.NoError(o, err)
	return testQueue{o.T, o.account, o.server.Queue(name)}
}

func (d testQueue) set(pairs ...string) error {
	attributes := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		attributes[pairs[i]] = pairs[i+1]
	}
	_, err := d.SetQueueAttributes(d.Context(), &sqs.SetQueueAttributesInput{QueueUrl: aws.String(d.queue.URL()), Attributes: attributes})
	return err
}

func (d testQueue) purge() error {
	_, err := d.PurgeQueue(d.Context(), &sqs.PurgeQueueInput{QueueUrl: aws.String(d.queue.URL())})
	return err
}

// receiveAll receives up to ten messages with all their attributes.
func (d testQueue) receiveAll() []types.Message {
	d.Helper()
	return d.receiveWith(sqs.ReceiveMessageInput{
		MaxNumberOfMessages: 10, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}, MessageAttributeNames: []string{"All"},
	})
}

// testQueue is the queue of one test, called in process or over HTTP. Its short methods
// fail the test at an error, except the methods that return the error.
type testQueue struct {
	*testing.T
	client
	queue *sqstest.Queue
}

// bothAPIs runs the test twice, each time in its own bubble of virtual time: once
// through the in-process API and once through a real client over the wire format.
func bothAPIs(t *testing.T, c sqstest.Config, test func(d testQueue)) {
	t.Helper()
	for _, api := range []struct {
		name string
		open func(q *sqstest.Queue) client
	}{
		{"in process", func(q *sqstest.Queue) client { return q }},
		{"over HTTP", func(q *sqstest.Queue) client {
			return q.Client(func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
		}},
	} {
		t.Run(api.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, err := sqstest.NewQueue(c)
				require.NoError(t, err)
				test(testQueue{t, api.open(q), q})
			})
		})
	}
}

// fact is a row in a table of recorded facts about AWS. Its name starts with its number
// in FACTS.md.
type fact struct {
	name   string
	config sqstest.Config
	test   func(d testQueue)
}

func hold(t *testing.T, facts []fact) {
	t.Helper()
	for _, f := range facts {
		t.Run(f.name, func(t *testing.T) { bothAPIs(t, f.config, f.test) })
	}
}

// msg describes a send; empty fields are absent.
type msg struct {
	body, group, id string
	attributes      map[string]string
	delay           int32
}

func (m msg) entry(id string) types.SendMessageBatchRequestEntry {
	e := types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &m.body, DelaySeconds: m.delay}
	if m.group != "" {
		e.MessageGroupId = &m.group
	}
	if m.id != "" {
		e.MessageDeduplicationId = &m.id
	}
	for name, value := range m.attributes {
		if e.MessageAttributes == nil {
			e.MessageAttributes = map[string]types.MessageAttributeValue{}
		}
		e.MessageAttributes[name] = stringAttribute(value)
	}
	return e
}

func stringAttribute(value string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
}

func (d testQueue) trySend(m msg) (*sqs.SendMessageOutput, error) {
	e := m.entry("")
	return d.SendMessage(d.Context(), &sqs.SendMessageInput{
		QueueUrl: aws.String(d.queue.URL()), MessageBody: e.MessageBody, MessageGroupId: e.MessageGroupId,
		MessageDeduplicationId: e.MessageDeduplicationId, MessageAttributes: e.MessageAttributes, DelaySeconds: e.DelaySeconds,
	})
}

func (d testQueue) send(m msg) *sqs.SendMessageOutput {
	d.Helper()
	out, err := d.trySend(m)
	require.NoError(d, err)
	return out
}

// sendAll sends bodies to a group, one call each.
func (d testQueue) sendAll(group string, bodies ...string) {
	d.Helper()
	for _, b := range bodies {
		d.send(msg{body: b, group: group})
	}
}

func (d testQueue) tryBatch(entries ...types.SendMessageBatchRequestEntry) (*sqs.SendMessageBatchOutput, error) {
	return d.SendMessageBatch(d.Context(), &sqs.SendMessageBatchInput{QueueUrl: aws.String(d.queue.URL()), Entries: entries})
}

func (d testQueue) batch(entries ...types.SendMessageBatchRequestEntry) *sqs.SendMessageBatchOutput {
	d.Helper()
	out, err := d.tryBatch(entries...)
	require.NoError(d, err)
	return out
}

func (d testQueue) receiveWith(in sqs.ReceiveMessageInput) []types.Message {
	d.Helper()
	in.QueueUrl = aws.String(d.queue.URL())
	out, err := d.ReceiveMessage(d.Context(), &in)
	require.NoError(d, err)
	return out.Messages
}

// refusesAttempt asserts that the queue refuses a receive, because its
// ReceiveRequestAttemptId can no longer be used (F-151). The parameter `when` describes the
// situation in the failure message.
func (d testQueue) refusesAttempt(in sqs.ReceiveMessageInput, when string) {
	d.Helper()
	in.QueueUrl = aws.String(d.queue.URL())
	_, err := d.ReceiveMessage(d.Context(), &in)
	require.Error(d, err, when)
	d.refused(err, "InvalidParameterValue", "Value "+*in.ReceiveRequestAttemptId+" for parameter ReceiveRequestAttemptId is invalid. "+
		"Reason: The receiveRequestAttemptId is not valid anymore since the receive call is not retryable.")
}

func (d testQueue) receive(limit int32) []types.Message {
	d.Helper()
	return d.receiveWith(sqs.ReceiveMessageInput{MaxNumberOfMessages: limit})
}

func (d testQueue) tryDelete(m types.Message) error {
	_, err := d.DeleteMessage(d.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String(d.queue.URL()), ReceiptHandle: m.ReceiptHandle})
	return err
}

func (d testQueue) delete(messages ...types.Message) {
	d.Helper()
	for _, m := range messages {
		require.NoError(d, d.tryDelete(m))
	}
}

func (d testQueue) tryChange(m types.Message, seconds int32) error {
	_, err := d.ChangeMessageVisibility(d.Context(), &sqs.ChangeMessageVisibilityInput{
		QueueUrl: aws.String(d.queue.URL()), ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds,
	})
	return err
}

func (d testQueue) change(m types.Message, seconds int32) {
	d.Helper()
	require.NoError(d, d.tryChange(m, seconds))
}

func (d testQueue) attribute(name types.QueueAttributeName) string {
	d.Helper()
	out, err := d.GetQueueAttributes(d.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(d.queue.URL()), AttributeNames: []types.QueueAttributeName{name},
	})
	require.NoError(d, err)
	return out.Attributes[string(name)]
}

func bodies(messages []types.Message) []string {
	var b []string
	for _, m := range messages {
		b = append(b, *m.Body)
	}
	return b
}

func (d testQueue) stored() []string {
	var b []string
	for _, m := range d.queue.Messages() {
		b = append(b, m.Body)
	}
	return b
}

// refused asserts the code and text that a caller gets from smithy.APIError.
func (d testQueue) refused(err error, code, text string) {
	d.Helper()
	var api smithy.APIError
	if assert.ErrorAs(d, err, &api) {
		assert.Equal(d, code, api.ErrorCode())
		assert.Equal(d, text, api.ErrorMessage())
	}
	var operation *smithy.OperationError
	assert.ErrorAs(d, err, &operation)
}

const interval = 5 * time.Minute
