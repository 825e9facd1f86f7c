package sqsfifo

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory"
)

// storeKeys makes the keys under which a store keeps the events of one queue.
type storeKeys struct {
	client string // Config.Store.Client

	// queue is Config.Store.Queue or, if that is empty, the ARN derived from an AWS URL. It
	// is the queue's name in the store's keys. If the field `queue` is empty, the name is
	// the ARN that SQS reports (see queueName).
	queue     string
	inspector *inspector // reads the queue's attributes; nil without a store
}

// queueName returns the queue's name in the store's keys, or "" while the name is not known.
func (k *storeKeys) queueName() string {
	if k.queue != "" {
		return k.queue
	}
	if r := k.inspector.report.Load(); r != nil {
		return r.ARN
	}
	return ""
}

// learnName asks SQS for the queue's ARN, if the ARN is needed as the queue's name in the
// store's keys and is not known yet.
func (k *storeKeys) learnName(ctx context.Context) {
	if k.inspector != nil && k.queueName() == "" {
		_ = k.inspector.check(ctx) // ignore the error: each event calls check again and reports it
	}
}

var errNoARN = errors.New("the queue does not say its ARN, which is its name in the store; set Config.Store.Queue, or allow sqs:GetQueueAttributes")

// claimLate prepares the claim of an event that was submitted before the queue's ARN, a
// part of the key, was known. If the ARN is still unknown, the event has to wait.
func (k *storeKeys) claimLate(in *memory.Memory, s *submission) (wait bool, err error) {
	switch {
	case k.inspector == nil || s.known.HasClaim():
		return false, nil
	case k.queueName() == "" && k.inspector.report.Load() != nil:
		return false, s.notStored(errNoARN)
	}
	return k.queueName() == "", k.prepare(in, s)
}

// prepare prepares the claim of an event. The store's key contains the queue's ARN. If the
// ARN is not known yet, prepare leaves the claim to claimLate.
func (k *storeKeys) prepare(in *memory.Memory, s *submission) error {
	if k.queueName() == "" {
		s.known.DeferClaim()
		return nil
	}
	if err := k.makeClaim(in, &s.known, s.msg, s.extras == nil || len(s.extras.findings) == 0); err != nil {
		return s.notStored(err)
	}
	return nil
}

// operation is the value of [idempotency.Key].Operation in all keys of this package.
const operation = "sqs.send"

// fingerprintSpec is part of each fingerprint and names the method of its computation.
// Another method needs another name.
const fingerprintSpec = "sqsfifo.event/1"

// fingerprint returns the hash by which the store compares two events of one key: events
// with different payloads have different fingerprints.
func fingerprint(source, key, payload string) idempotency.Fingerprint {
	return idempotency.FingerprintOf(fingerprintSpec, bytesOf(source), bytesOf(key), bytesOf(payload))
}

// fingerprintOfBody returns the fingerprint of a stored body. The second result is false if
// the body has no dedupe key.
func fingerprintOfBody(body []byte) (idempotency.Fingerprint, bool) {
	source, key, payload := contents(string(body))
	return fingerprint(source, key, payload), key != ""
}

// makeClaim makes the claim of a message for the store and puts it into the record r. If
// the argument `valid` is true, the message broke no rule of package lint, so its body is
// canonical. makeClaim then finds source and payload without decoding the body.
func (k *storeKeys) makeClaim(in *memory.Memory, r *memory.Record, m *Message, valid bool) error {
	source, payload := "", m.Body
	if valid {
		source, payload = m.source(), payloadOf(m.Body)
	} else if s, _, p := contents(m.Body); p != "" {
		source, payload = s, p
	}
	key := idempotency.Key{Scope: idempotency.JoinScope(k.client, k.queueName(), source), Operation: operation, Value: m.key()}
	if len(key.Scope) > idempotency.MaxScope {
		key.Scope = "sha256:" + hexOf(sha256.Sum256(bytesOf(key.Scope)))
	}
	if len(key.Value) > idempotency.MaxValue { // with EnforcementWarn, a key may be longer than the store allows
		key.Value = "sha256:" + hexOf(sha256.Sum256(bytesOf(key.Value)))
	}
	var dataset idempotency.Dataset
	if of := m.Dataset; of != nil {
		dataset = idempotency.Dataset{ID: of.ID, Version: of.Version, SourceURI: of.SourceURI, ArtifactChecksum: of.ArtifactChecksum, CARELabel: of.CARELabel}
	}
	is := fingerprint(source, m.key(), payload)
	sent := memory.Message{Body: bytesOf(m.Body), Group: m.Group}
	err := in.Claim(r, key, is, sent, dataset)
	// The dataset is only information, so an event must not fail because of it.
	if err != nil && dataset != (idempotency.Dataset{}) {
		err = in.Claim(r, key, is, sent, idempotency.Dataset{})
	}
	return err
}

// contents decodes a body, possibly from another encoder, and returns the payload in
// canonical form. It returns empty strings for a body other than an envelope.
func contents(body string) (source, key, payload string) {
	var e struct {
		EventSource string          `json:"event_source"`
		DedupeKey   string          `json:"dedupe_key"`
		Payload     json.RawMessage `json:"payload"`
	}
	if json.Unmarshal([]byte(body), &e) != nil || e.Payload == nil {
		return "", "", ""
	}
	canonical, err := canonicaljson.CanonicalizeStrict(e.Payload)
	if err != nil { // for example, because the payload has two members with one name
		canonical = e.Payload
	}
	return e.EventSource, e.DedupeKey, string(canonical)
}
