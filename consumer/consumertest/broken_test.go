package consumertest_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer/consumertest"
)

// Each case has a consumer with one mistake. The suite must report a violation of the named
// invariant. A case gets five runs, because some mistakes show only after a kill at a
// certain moment.
func TestBrokenConsumers(t *testing.T) {
	broken := map[string]struct {
		invariant string
		run       consumertest.Run
	}{
		"groups run concurrently and in order":       {"I1", withConfig(func(c *consumer.Config[string]) { c.Groups = 1 })},
		"order under faults of every call":           {"I5", loop{endsAtError: true}.run},
		"two consumers share the groups":             {"I2", withClient(func(c consumer.Client) consumer.Client { return noExtensions{c} })},
		"poison with one message per receive":        {"I4", loop{}.run},
		"poison with ten messages per receive":       {"I4", loop{}.run},
		"nine poison messages and maxReceiveCount 1": {"I4", loop{}.run},
		"a message that kills its consumer":          {"I4", loop{}.run},
		"kills at every step":                        {"I5", loop{deletesFirst: true}.run},
		"a delete that fails holds its group":        {"I1", withClient(func(c consumer.Client) consumer.Client { return blindDeletes{c} })},
		"a shutdown leaves nothing in flight":        {"I6", withClient(func(c consumer.Client) consumer.Client { return noReleases{c} })},
		"a handler of two hours":                     {"I7", withClient(func(c consumer.Client) consumer.Client { return noExtensions{c} })},
		"a stalled consumer learns of its loss":      {"I8", withClient(func(c consumer.Client) consumer.Client { return blindExtensions{c} })},
		"bounded memory":                             {"I9", withConfig(func(c *consumer.Config[string]) { c.Messages = 1000 })},
		"a standard queue with group IDs":            {"I11", loop{}.run},
		"a quota of 300 calls a second":              {"I12", withConfig(func(c *consumer.Config[string]) { c.PerReceive, c.Groups = 1, 2 })},
		"purge, clock step and redrive":              {"I5", loop{endsAtError: true}.run},
	}
	for _, name := range consumertest.CaseNames() {
		t.Run(name, func(t *testing.T) {
			b, ok := broken[name]
			require.True(t, ok, "no broken consumer")
			var violations string
			for range 5 {
				violations = strings.Join(consumertest.Check(t, name, b.run), "\n")
				if strings.Contains(violations, b.invariant+":") {
					return
				}
			}
			assert.Contains(t, violations, b.invariant+":")
		})
	}
}

// A consumer that handles the messages of a batch in parallel violates the order of a group
// (I1), and its handlers overlap (I2).
func TestParallelConsumer(t *testing.T) {
	violations := strings.Join(consumertest.Check(t, "groups run concurrently and in order", loop{parallel: true}.run), "\n")
	assert.Contains(t, violations, "I1:")
	assert.Contains(t, violations, "I2:")
}

// A consumer that parks a message after its first failed call violates I4.
func TestImpatientConsumer(t *testing.T) {
	for _, name := range []string{"poison with one message per receive", "poison with ten messages per receive", "nine poison messages and maxReceiveCount 1"} {
		violations := strings.Join(consumertest.Check(t, name, withConfig(func(c *consumer.Config[string]) { c.Failure.Attempts = 1 })), "\n")
		assert.Regexp(t, `I4: g/\d was parked after 1 calls`, violations, name)
	}
}

// A consumer whose handlers never learn of the end of their contexts violates I8.
func TestDeafConsumer(t *testing.T) {
	violations := strings.Join(consumertest.Check(t, "a stalled consumer learns of its loss", withConfig(func(c *consumer.Config[string]) {
		handle := c.Handle
		c.Handle = func(ctx context.Context, m consumer.Message[string]) error {
			return handle(context.WithoutCancel(ctx), m)
		}
	})), "\n")
	assert.Contains(t, violations, "I8:")
}

// withConfig returns a Run of package consumer with a changed configuration.
func withConfig(change func(c *consumer.Config[string])) consumertest.Run {
	return func(ctx context.Context, e consumertest.Env) error {
		wrong := config(e)
		change(&wrong)
		c, err := consumer.New(e.Client.(consumer.Client), wrong)
		if err != nil {
			return err
		}
		return c.Run(ctx)
	}
}

// withClient returns a Run of package consumer with a wrapped client. The wrapper hides some
// answers of SQS.
func withClient(wrap func(consumer.Client) consumer.Client) consumertest.Run {
	return func(ctx context.Context, e consumertest.Env) error {
		c, err := consumer.New(wrap(e.Client.(consumer.Client)), config(e))
		if err != nil {
			return err
		}
		return c.Run(ctx)
	}
}

// changed returns an answer of SQS that reports success for every entry of the call.
func changed(in *sqs.ChangeMessageVisibilityBatchInput) *sqs.ChangeMessageVisibilityBatchOutput {
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	for _, e := range in.Entries {
		out.Successful = append(out.Successful, types.ChangeMessageVisibilityBatchResultEntry{Id: e.Id})
	}
	return out
}

// noExtensions drops extensions of visibility timeouts and reports success.
type noExtensions struct{ consumer.Client }

func (c noExtensions) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	if in.Entries[0].VisibilityTimeout == 0 {
		return c.Client.ChangeMessageVisibilityBatch(ctx, in, o...)
	}
	return changed(in), nil
}

// noReleases drops calls with a visibility timeout of 0, which make messages visible, and
// reports success.
type noReleases struct{ consumer.Client }

func (c noReleases) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	if in.Entries[0].VisibilityTimeout > 0 {
		return c.Client.ChangeMessageVisibilityBatch(ctx, in, o...)
	}
	return changed(in), nil
}

// blindExtensions reports success for every change of a visibility timeout, even after a
// failure.
type blindExtensions struct{ consumer.Client }

func (c blindExtensions) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	_, _ = c.Client.ChangeMessageVisibilityBatch(ctx, in, o...)
	return changed(in), nil
}

// blindDeletes reports success for every delete, even after a failure.
type blindDeletes struct{ consumer.Client }

func (c blindDeletes) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, o ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	_, _ = c.Client.DeleteMessageBatch(ctx, in, o...)
	out := &sqs.DeleteMessageBatchOutput{}
	for _, e := range in.Entries {
		out.Successful = append(out.Successful, types.DeleteMessageBatchResultEntry{Id: e.Id})
	}
	return out, nil
}

// loop is a simple consumer, as in many programs. It receives a batch, handles each group
// up to the group's first failure, and deletes the handled messages. SQS delivers the other
// messages again.
type loop struct {
	parallel     bool // handles all messages of a batch concurrently
	deletesFirst bool
	endsAtError  bool // ends at the first error of SQS or of Handle
}

func (l loop) run(ctx context.Context, e consumertest.Env) error {
	for ctx.Err() == nil {
		out, err := e.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &e.QueueURL, MaxNumberOfMessages: int32(e.PerReceive), WaitTimeSeconds: 5, VisibilityTimeout: int32(e.Visibility / time.Second),
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"},
		})
		if err != nil {
			if l.endsAtError {
				return nil
			}
			time.Sleep(time.Second)
			continue
		}
		groups := map[string][]types.Message{}
		for i, m := range out.Messages {
			key := m.Attributes["MessageGroupId"]
			if l.parallel {
				key = string(rune(i))
			}
			groups[key] = append(groups[key], m)
		}
		var wait sync.WaitGroup
		var died atomic.Bool
		for _, messages := range groups {
			wait.Add(1)
			go func() {
				defer wait.Done()
				for _, m := range messages {
					if err := l.handle(ctx, e, m); err != nil {
						if l.endsAtError {
							died.Store(true)
						}
						return
					}
				}
			}()
		}
		wait.Wait()
		if died.Load() {
			return nil
		}
	}
	return nil
}

func (l loop) handle(ctx context.Context, e consumertest.Env, m types.Message) error {
	remove := func() error {
		_, err := e.Client.DeleteMessage(context.WithoutCancel(ctx), &sqs.DeleteMessageInput{QueueUrl: &e.QueueURL, ReceiptHandle: m.ReceiptHandle})
		return err
	}
	if l.deletesFirst {
		if err := remove(); err != nil {
			return err
		}
	}
	if err := e.Handle(ctx, consumertest.Delivery{Group: m.Attributes["MessageGroupId"], MessageID: *m.MessageId, Body: *m.Body}); err != nil {
		return err
	}
	if l.deletesFirst {
		return nil
	}
	return remove()
}
