// Package migration moves a producer and its consumers from a legacy message body to the
// envelope. Each step can be deployed, and undone, separately. The package's test takes
// all steps and checks after each that no event is lost and none is handled twice.
//
//  1. Legacy: SendLegacy sends the legacy body, DecodeLegacy reads it.
//  2. Consumers read legacy bodies and envelopes (DecodeBoth) and remember dedupe keys.
//  3. The new producer sends the legacy bodies (SendLegacyWith). Enforcement is EnforcementWarn: the
//     producer sends messages that break a rule, and lists the broken rules as findings.
//  4. The new producer sends the envelope, still with EnforcementWarn.
//  5. After a day without findings, Enforcement is EnforcementRefuse: the producer refuses messages
//     that break a rule. When the last legacy message has left the queue and its
//     dead-letter queue, consumers read only the envelope.
package migration

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Order is the event: a customer placed an order.
type Order struct {
	ID       string    `json:"id"`
	Customer string    `json:"customer"`
	Placed   time.Time `json:"placed"`
}

// identify returns the identity of an order. The legacy message and the envelope of an
// order have the same dedupe key, so a consumer that receives both handles the order once.
func identify(o Order) (sqsfifo.Identity, error) {
	key, err := sqsfifo.JoinKey("order", o.ID)
	return sqsfifo.Identity{DedupeKey: key, Group: o.Customer, Time: o.Placed}, err
}

// LegacyClient is the subset of *sqs.Client that the legacy producer calls.
type LegacyClient interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// SendLegacy is the producer before the migration: the body is the order as JSON, an
// attribute repeats the order's ID, and a failed send is tried once more.
func SendLegacy(ctx context.Context, client LegacyClient, queueURL string, o Order) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	text, stringType := string(body), "String"
	in := &sqs.SendMessageInput{
		QueueUrl: &queueURL, MessageGroupId: &o.Customer, MessageBody: &text,
		MessageAttributes: map[string]types.MessageAttributeValue{"order_id": {DataType: &stringType, StringValue: &o.ID}},
	}
	if _, err = client.SendMessage(ctx, in); err != nil {
		_, err = client.SendMessage(ctx, in)
	}
	return err
}

// DecodeLegacy decodes a legacy body. The result has the event source and the dedupe key
// of the new producer. A consumer's store therefore recognises an order that arrives
// twice: once in a legacy body, and once in an envelope.
func DecodeLegacy(body string) (sqsfifo.Envelope[Order], error) {
	var o Order
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		return sqsfifo.Envelope[Order]{}, fmt.Errorf("legacy order: %w", err)
	}
	id, err := identify(o)
	if err != nil {
		return sqsfifo.Envelope[Order]{}, fmt.Errorf("legacy order: %w", err)
	}
	return sqsfifo.Envelope[Order]{DedupeKey: id.DedupeKey, EventSource: source, EventTime: id.Time, Payload: o}, nil
}
