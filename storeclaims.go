package sqsfifo

import (
	"crypto/sha256"
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/claims"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
)

// eventStore claims the events of a queue in its store.
type eventStore struct {
	*claims.Claimant
	client, queue string
	durable       bool // receipts
}

// newEventStore returns nil without a store. The configuration is valid.
func newEventStore(s StoreConfig, queueURL string, retryFor time.Duration, now func() time.Duration) (*eventStore, error) {
	if s.Store == nil {
		return nil, nil
	}
	policy, err := s.policy(retryFor)
	if err != nil {
		return nil, err
	}
	d := &eventStore{client: s.Client, queue: s.Queue, durable: s.DurableReceipts}
	if d.queue == "" {
		d.queue = queueURL
	}
	d.Claimant = claims.New(claims.Options{
		Store: s.Store, Policy: policy, Attempt: sqscall.Timeout, FailOpen: s.FailOpen, Now: now,
		Recompute: fingerprintOfBody,
	})
	return d, nil
}

// operation names the sends among the operations of a store.
const operation = "sqs.send"

// fingerprintSpec names how fingerprint computes. Another computation needs another name.
const fingerprintSpec = "sqsfifo.event/1"

// fingerprint is what an event is, for the store: another payload is another event, and
// other bytes of the same payload are not.
func fingerprint(source, key, payload string) idempotency.Fingerprint {
	return idempotency.FingerprintOf(fingerprintSpec, bytesOf(source), bytesOf(key), bytesOf(payload))
}

// fingerprintOfBody returns the fingerprint of a stored body.
func fingerprintOfBody(body []byte) (idempotency.Fingerprint, bool) {
	source, key, payload := contents(string(body))
	return fingerprint(source, key, payload), key != ""
}

// claim returns the claim of a message. A plain message has passed the lint.
func (d *eventStore) claim(m *Message, plain bool) (*claims.Claim, error) {
	source, payload := "", m.Body
	if plain {
		source, payload = sourceOf(m.Body), payloadOf(m.Body)
	} else if s, _, p := contents(m.Body); p != "" {
		source, payload = s, p
	}
	key := idempotency.Key{Scope: idempotency.JoinScope(d.client, d.queue, source), Operation: operation, Value: m.key()}
	if len(key.Scope) > idempotency.MaxScope {
		key.Scope = "sha256:" + hexOf(sha256.Sum256(bytesOf(key.Scope)))
	}
	if len(key.Value) > idempotency.MaxValue { // sent with Warn
		key.Value = "sha256:" + hexOf(sha256.Sum256(bytesOf(key.Value)))
	}
	var dataset idempotency.Dataset
	if of := m.Dataset; of != nil {
		dataset = idempotency.Dataset{ID: of.ID, Version: of.Version, SourceURI: of.SourceURI, ArtifactChecksum: of.ArtifactChecksum, CARELabel: of.CARELabel}
	}
	is := fingerprint(source, m.key(), payload)
	sent := claims.Message{Body: bytesOf(m.Body), Group: m.Group}
	k, err := d.Claim(key, is, sent, dataset)
	if err != nil && dataset != (idempotency.Dataset{}) { // telemetry must not cost an event
		k, err = d.Claim(key, is, sent, idempotency.Dataset{})
	}
	return k, err
}

const sourceMember = `,"event_source":"`

// sourceOf returns the event_source of a body that passed the lint. It needs no decoding.
func sourceOf(body string) string {
	_, after, _ := strings.Cut(body, sourceMember)
	source, _, _ := strings.Cut(after, `"`)
	return source
}

// contents returns what a body says of its event, with the payload in canonical form, and
// nothing if the body is not an envelope. It is for bodies that another encoder made.
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
	if err != nil { // such as a member that is there twice
		canonical = e.Payload
	}
	return e.EventSource, e.DedupeKey, string(canonical)
}

// replaced returns the message as it is in the store.
func (m *Message) replaced(by claims.Message) *Message {
	r := *m
	r.Body, r.Group = string(by.Body), by.Group
	var e struct {
		EventID uuid.UUID `json:"event_id"`
	}
	if json.Unmarshal(by.Body, &e) == nil && e.EventID != uuid.Nil {
		r.EventID = e.EventID
	}
	return &r
}
