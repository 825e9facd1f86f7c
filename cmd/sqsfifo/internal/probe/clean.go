package probe

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// UncleanError reports that [Config.Clean] was refused, because receiving might move other
// senders' messages to a dead-letter queue. No message was received.
type UncleanError struct{ Why string }

func (e *UncleanError) Error() string {
	return "nothing was received, and the probe's messages stay in the queue: " + e.Why
}

// After inVain answers in a row with only other senders' messages, clean stops: these
// messages were given back and may be received repeatedly. After as many answers in a row
// without a message as the constant empty says, clean stops, too. Each of these answers
// takes a second, so messages that a lost answer has hidden for hiddenFor seconds are
// visible again before clean stops.
const (
	inVain = 3
	empty  = hiddenFor + 2
)

// hiddenFor is the visibility timeout of receives in seconds: another sender's message
// stays hidden for this time if this process dies before it gives the message back.
const hiddenFor = 10

// clean receives and deletes the messages of this run.
func (p *prober) clean(ctx context.Context) error {
	switch {
	case p.attrs == nil:
		return &UncleanError{"its attributes may not be read, and it may have a dead-letter queue, to which each receive brings the messages of others nearer"}
	case p.attrs["RedrivePolicy"] != "":
		return &UncleanError{"it has a dead-letter queue, to which each receive brings the messages of others nearer"}
	}
	var errs []error
	for vain, nothing := 0, 0; vain < inVain && nothing < empty && p.report.Deleted < len(p.ids); {
		out, err := p.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &p.QueueURL, MaxNumberOfMessages: 10, VisibilityTimeout: hiddenFor, WaitTimeSeconds: 1,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameMessageGroupId},
		})
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("sqs:ReceiveMessage: %w", err))...)
		}
		if len(out.Messages) == 0 {
			nothing++
			continue
		}
		// Give back foreign messages first, without delay.
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
		if nothing, vain = 0, vain+1; len(own) > 0 {
			vain = 0
		}
	}
	return errors.Join(errs...)
}

// own reports whether this run sent the message: the message has an ID that SQS returned
// to this run, and a group of this run.
func (p *prober) own(m types.Message) bool {
	if m.MessageId == nil || !p.ids[*m.MessageId] {
		return false
	}
	group := m.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)]
	return group == p.report.Groups[0] || group == p.report.Groups[1]
}
