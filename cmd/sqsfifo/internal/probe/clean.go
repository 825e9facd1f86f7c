package probe

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// UncleanError reports that the probe's messages stay in the queue, although [Config.Clean]
// is set. The probe received no message, because the queue has or may have a dead-letter
// queue: the probe would also receive other senders' messages, and SQS moves a message to
// the dead-letter queue after a number of receives.
type UncleanError struct{ Why string }

func (e *UncleanError) Error() string {
	return "nothing was received, and the probe's messages stay in the queue: " + e.Why
}

// The method `cleanUp` receives messages until it reaches one of these limits.
const (
	// maxForeign limits nonempty answers in a row with only other senders' messages. SQS
	// may repeat these messages.
	maxForeign = 3
	// maxEmpty limits empty answers in a row, each after a wait of a second. Together they
	// take longer than hiddenFor, so the messages of a lost answer become visible again.
	maxEmpty = hiddenFor + 2
)

// hiddenFor is the visibility timeout of each receive, in seconds. Other senders' messages
// stay hidden for this time if the process is killed before it makes them visible again.
const hiddenFor = 10

// cleanUp receives messages until all messages of this run are deleted, or until
// maxForeign or maxEmpty is reached. It makes other senders' messages visible again.
func (p *prober) cleanUp(ctx context.Context) error {
	switch {
	case p.attrs == nil:
		return &UncleanError{"its attributes may not be read, and it may have a dead-letter queue, to which each receive brings the messages of others nearer"}
	case p.attrs["RedrivePolicy"] != "":
		return &UncleanError{"it has a dead-letter queue, to which each receive brings the messages of others nearer"}
	}
	var errs []error
	for foreign, empty := 0, 0; foreign < maxForeign && empty < maxEmpty && p.report.Deleted < len(p.ids); {
		out, err := p.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &p.QueueURL, MaxNumberOfMessages: 10, VisibilityTimeout: hiddenFor, WaitTimeSeconds: 1,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameMessageGroupId},
		})
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("sqs:ReceiveMessage: %w", err))...)
		}
		if len(out.Messages) == 0 {
			empty++
			continue
		}
		// First make other senders' messages visible again, because other receivers wait
		// for them. Then delete the messages of this run.
		var own []types.Message
		for _, m := range out.Messages {
			if p.own(m) {
				own = append(own, m)
				continue
			}
			p.report.Returned++
			if _, err := p.Client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
				QueueUrl: &p.QueueURL, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 0,
			}); err != nil {
				errs = append(errs, fmt.Errorf("sqs:ChangeMessageVisibility: a message of somebody else comes back in %d s: %w", hiddenFor, err))
			}
		}
		for _, m := range own {
			if _, err := p.Client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &p.QueueURL, ReceiptHandle: m.ReceiptHandle}); err != nil {
				errs = append(errs, fmt.Errorf("sqs:DeleteMessage: %w", err))
				continue
			}
			p.report.Deleted++
		}
		if len(errs) > 0 {
			break
		}
		if empty, foreign = 0, foreign+1; len(own) > 0 {
			foreign = 0
		}
	}
	return errors.Join(errs...)
}

// own reports whether this run sent the message: a send of this run returned the message's
// ID, and the message is in a group of this run.
func (p *prober) own(m types.Message) bool {
	if m.MessageId == nil || !p.ids[*m.MessageId] {
		return false
	}
	group := m.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)]
	return group == p.report.Groups[0] || group == p.report.Groups[1]
}
