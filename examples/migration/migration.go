package migration

import (
	"context"
	"encoding/json"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

const source = "kfm.shop.orders"

// DecodeBoth reads the envelope and, during the migration, the legacy body.
func DecodeBoth(body string) (sqsfifo.Envelope[Order], error) {
	event, err := sqsfifo.DecodeEnvelope[Order](body)
	if err == nil {
		return event, nil
	}
	if legacy, legacyErr := DecodeLegacy(body); legacyErr == nil {
		return legacy, nil
	}
	return event, err
}

// NewProducer returns the new producer: with EnforcementWarn during the migration, with EnforcementRefuse
// afterwards.
func NewProducer(client sqsfifo.Client, queueURL string, enforcement sqsfifo.Enforcement) (*sqsfifo.Producer[Order], error) {
	return sqsfifo.NewProducer(client, sqsfifo.Config[Order]{
		QueueURL:    queueURL,
		Source:      source,
		Identify:    identify,
		Enforcement: enforcement,
	})
}

// SendLegacyWith sends the legacy body, byte for byte, with the new producer. Legacy
// consumers can read the body. SQS recognises a duplicate of an order that the legacy
// producer sent.
//
// The legacy body breaks rules, so the producer needs EnforcementWarn. The receipt's
// findings list the broken rules.
func SendLegacyWith(ctx context.Context, producer *sqsfifo.Producer[Order], o Order) (sqsfifo.Receipt, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return sqsfifo.Receipt{}, err
	}
	id, err := identify(o)
	if err != nil {
		return sqsfifo.Receipt{}, err
	}
	return producer.SendMessage(ctx, &sqsfifo.Message{
		Group: id.Group, DedupeKey: id.DedupeKey, Body: string(body),
		Attributes: map[string]string{"order_id": o.ID},
	})
}
