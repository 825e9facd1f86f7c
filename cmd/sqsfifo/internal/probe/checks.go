package probe

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// NotFIFOError reports a queue without deduplication. No message was sent.
type NotFIFOError struct{ QueueURL string }

func (e *NotFIFOError) Error() string {
	return fmt.Sprintf("%s is not a FIFO queue: it neither orders nor deduplicates, and nothing was sent; create a FIFO queue (a queue's type is fixed)", e.QueueURL)
}

// attributes reads the attributes of the queue, such as ContentBasedDeduplication, and
// reports them as a check.
func (p *prober) attributes(ctx context.Context) error {
	if !strings.HasSuffix(p.QueueURL, ".fifo") {
		return &NotFIFOError{p.QueueURL}
	}
	out, err := p.Client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &p.QueueURL, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if denied(err) {
		p.add("attributes", NotTried, "sqs:GetQueueAttributes is denied; what follows is what the queue does")
		return nil
	}
	if err != nil {
		return fmt.Errorf("sqs:GetQueueAttributes: %w", err)
	}
	p.attrs = out.Attributes
	if p.attrs["FifoQueue"] != "true" {
		return &NotFIFOError{p.QueueURL}
	}
	or := func(name, usual string) string {
		if v := p.attrs[name]; v != "" {
			return v
		}
		return usual
	}
	p.add("attributes", Note, "ContentBasedDeduplication %s, DeduplicationScope %s, FifoThroughputLimit %s, MaximumMessageSize %s, DelaySeconds %s, %s",
		or("ContentBasedDeduplication", "false"), or("DeduplicationScope", "queue"), or("FifoThroughputLimit", "perQueue"),
		or("MaximumMessageSize", "1048576"), or("DelaySeconds", "0"), deadLetters(p.attrs))
	return nil
}

func deadLetters(attrs map[string]string) string {
	if attrs["RedrivePolicy"] != "" {
		return "with a dead-letter queue"
	}
	return "no dead-letter queue"
}

// contentBased tests whether the queue accepts a message without a deduplication ID. It
// sets p.hashing to the result.
func (p *prober) contentBased(ctx context.Context) error {
	const name = "content-based"
	p.hashing = true
	_, err := p.send(ctx, message{name: "a"})
	says := p.attrs["ContentBasedDeduplication"]
	switch {
	case err == nil && says == "false":
		p.add(name, Differs, "a message without MessageDeduplicationId is accepted, but the attribute ContentBasedDeduplication is false")
	case err == nil:
		p.add(name, AsExpected, "on: the queue deduplicates by the SHA-256 of the body")
	case refusedBy(err) == "" || denied(err) || says == "true":
		return err
	default:
		p.hashing = false
		if _, again := p.send(ctx, message{name: "a"}); again != nil {
			return errors.Join(err, again)
		}
		p.add(name, Note, "off: each message needs a MessageDeduplicationId, so that Config.Deduplication has to be DeduplicationExplicit; the other checks send the SHA-256 of the body")
	}
	return nil
}

// sameMessage sends a message twice. The queue must suppress the second copy.
func (p *prober) sameMessage(ctx context.Context) error {
	first, again, err := p.twice(ctx, message{name: "a"}, message{name: "a"})
	if err != nil {
		return err
	}
	if first == again {
		p.add("duplicate", AsExpected, "suppressed: the answer has the MessageId and the SequenceNumber of the first")
	} else {
		p.add("duplicate", Differs, "the same message was stored twice, as %s and %s: retries are delivered twice", first.id, again.id)
	}
	return nil
}

func (p *prober) twice(ctx context.Context, a, b message) (first, second stored, err error) {
	if first, err = p.send(ctx, a); err == nil {
		second, err = p.send(ctx, b)
	}
	return first, second, err
}

// ownHash sends a body twice: first without a deduplication ID, then with the body's
// SHA-256 as the ID. The queue must suppress the second message.
func (p *prober) ownHash(ctx context.Context) error {
	if !p.hashing {
		p.add("body-hash", NotTried, "the queue does not hash bodies")
		return nil
	}
	body, err := p.body("a")
	if err != nil {
		return err
	}
	first, again, err := p.twice(ctx, message{name: "a"}, message{name: "a", id: sqsfifo.BodyHash(body)})
	if err != nil {
		return err
	}
	if first == again {
		p.add("body-hash", AsExpected, "the SHA-256 of the body, sent as MessageDeduplicationId, is recognised as the queue's own hash")
	} else {
		p.add("body-hash", Differs, "the SHA-256 of the body, sent as MessageDeduplicationId, is another ID than the queue's own: producers that send it and those that do not must not share this queue")
	}
	return nil
}

// otherBody sends two messages with different bodies. Both must be stored.
func (p *prober) otherBody(ctx context.Context) error {
	a, b, err := p.twice(ctx, message{name: "a"}, message{name: "b"})
	if err != nil {
		return err
	}
	older, okA := new(big.Int).SetString(a.sequence, 10)
	newer, okB := new(big.Int).SetString(b.sequence, 10)
	switch {
	case a.id == b.id:
		p.add("other-body", Differs, "lost: a message with another body got the MessageId of the first")
	case !okA || !okB || newer.Cmp(older) <= 0:
		p.add("other-body", Differs, "stored, but its SequenceNumber %q does not follow %q", b.sequence, a.sequence)
	default:
		p.add("other-body", AsExpected, "stored, with a greater SequenceNumber")
	}
	return nil
}

// attributeOnly sends two messages that differ only in an attribute, and expects that SQS
// suppresses the second.
func (p *prober) attributeOnly(ctx context.Context) error {
	attributes := map[string]types.MessageAttributeValue{"unique_key": {DataType: aws.String("String"), StringValue: aws.String("2")}}
	a, b, err := p.twice(ctx, message{name: "a"}, message{name: "a", attributes: attributes})
	if err != nil {
		return err
	}
	if a == b {
		p.add("attribute-only", AsExpected, "lost: a message that differs in an attribute only is suppressed, with success; what identifies an event has to be in the body")
	} else {
		p.add("attribute-only", Differs, "stored: this queue deduplicates by attributes, too, which SQS does not; do not rely on it")
	}
	return nil
}

// otherGroup sends the same body to two message groups, to find the queue's deduplication
// scope.
func (p *prober) otherGroup(ctx context.Context) error {
	a, b, err := p.twice(ctx, message{name: "a"}, message{name: "a", group: 1})
	if err != nil {
		return err
	}
	scope, means := "queue", "an event that comes again in another message group is suppressed"
	if a.id != b.id {
		scope, means = "messageGroup", "an event that comes again in another message group is delivered again; derive the group from what does not change"
	}
	if says := p.attrs["DeduplicationScope"]; says != "" && says != scope {
		p.add("scope", Differs, "%s: %s; but the attribute DeduplicationScope is %s (a change of it takes up to a minute)", scope, means, says)
	} else {
		p.add("scope", Note, "%s: %s", scope, means)
	}
	return nil
}

// hiddenPayload sends two bodies with the same explicit deduplication ID, and expects
// that SQS suppresses the second message.
func (p *prober) hiddenPayload(ctx context.Context) error {
	id := "sqsfifo-probe-" + p.report.Run
	a, b, err := p.twice(ctx, message{name: "c", id: id}, message{name: "d", id: id})
	if err != nil {
		return err
	}
	if a == b {
		p.add("explicit-id", AsExpected, "lost: a message with the MessageDeduplicationId of another one and another body is suppressed, with success")
	} else {
		p.add("explicit-id", Differs, "stored: a MessageDeduplicationId that comes again does not suppress a message with another body, which it does in SQS")
	}
	return nil
}

// SQS recognises a duplicate for five minutes (the deduplication window). The queue must
// suppress a duplicate at the time insideWindow after the first send, and store a duplicate
// at the time outsideWindow. The margins allow for the time on the network.
const (
	insideWindow  = 5*time.Minute - 15*time.Second
	outsideWindow = 5*time.Minute + 5*time.Second
)

// window tests whether the deduplication window of the queue is five minutes long. It sends
// two messages, and repeats the first inside and the second outside of the window.
func (p *prober) window(ctx context.Context) error {
	w, v, err := p.twice(ctx, message{name: "w"}, message{name: "v"})
	if err != nil {
		return err
	}
	began := time.Now()
	if err := clock.Sleep(ctx, insideWindow-time.Since(began)); err != nil {
		return err
	}
	again, err := p.send(ctx, message{name: "w"})
	if err != nil {
		return err
	}
	if again == w {
		p.add("window-begin", AsExpected, "a duplicate is recognised after %v", insideWindow)
	} else {
		p.add("window-begin", Differs, "a duplicate was stored after %v: SQS recognises it for five minutes", insideWindow)
	}
	if err := clock.Sleep(ctx, outsideWindow-time.Since(began)); err != nil {
		return err
	}
	if again, err = p.send(ctx, message{name: "v"}); err != nil {
		return err
	}
	if again != v {
		p.add("window-end", AsExpected, "after %v the same message is stored again", outsideWindow)
	} else {
		p.add("window-end", Differs, "a duplicate is still recognised after %v: SQS forgets it after five minutes", outsideWindow)
	}
	return nil
}
