package sqsfifo

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Message is one event as it goes to the queue, made by [Producer.Build]. It is
// plain data: store it as JSON in the transaction that makes the event true and
// pass it to [Producer.SendMessage] later, on any machine, as often as needed.
// Its body must not be changed on the way.
type Message struct {
	// Group is the message group ID: messages of one group are delivered in order.
	Group string `json:"group"`

	// DedupeKey and EventID repeat the members of the body, for look-ups.
	DedupeKey string    `json:"dedupe_key"`
	EventID   uuid.UUID `json:"event_id"`

	// Body is the canonical envelope, the bytes that SQS hashes.
	Body string `json:"body"`

	// Attributes are routing hints. SQS does not hash them.
	Attributes map[string]string `json:"attributes,omitempty"`

	// Dataset, where the event has one, goes to telemetry.
	Dataset *Dataset `json:"dataset,omitempty"`
}

// ReplayAttribute is the message attribute that names the run of a replay, as package
// replay sets it. A message that has it counts as a replay in spans and provenance
// records; it never bears identity, and SQS does not hash it.
const ReplayAttribute = "sqsfifo-replay-run"

func (m *Message) isReplay() bool { return m.Attributes[ReplayAttribute] != "" }

// clone returns a message that shares nothing with m.
func (m *Message) clone() *Message {
	c := *m
	c.Attributes, c.Dataset = maps.Clone(m.Attributes), m.Dataset.clone()
	return &c
}

const payloadMember = `,"payload":`

// payloadOf returns the payload of a body that passed the lint. A quote inside a
// string is escaped, so that the first occurrence is the member and no part of an
// earlier string; the members are in canonical order, so that it is the last.
func payloadOf(body string) string {
	_, payload, _ := strings.Cut(body, payloadMember)
	return strings.TrimSuffix(payload, "}")
}

// verify checks that the fields of a message that was built elsewhere agree with
// its body. The body has to have passed the lint.
func (m *Message) verify() error {
	before, _, _ := strings.Cut(m.Body, payloadMember)
	var is struct {
		DedupeKey string    `json:"dedupe_key"`
		EventID   uuid.UUID `json:"event_id"`
	}
	if err := json.Unmarshal([]byte(before+"}"), &is); err != nil || is.DedupeKey != m.DedupeKey || is.EventID != m.EventID {
		return &ViolationError{plain: true, Err: err, Findings: []lint.Finding{finding(ruleDedupeKey, "Message", "",
			"DedupeKey or EventID differ from those of the body; the message was changed after Build")}}
	}
	return nil
}

// lintMessage returns the message as the lint sees it.
func (r *ruleset) lintMessage(msg *Message) lint.Message {
	m := lint.Message{Body: msg.Body, GroupID: msg.Group, MaxSize: maxMessageBytes, Organization: r.organization}
	if len(msg.Attributes) > 0 {
		m.Attributes = make(map[string]lint.Attribute, len(msg.Attributes))
		for name, value := range msg.Attributes {
			m.Attributes[name] = lint.Attribute{DataType: stringType, StringValue: value}
		}
	}
	return m
}

var noAttributes = sha256.Sum256(nil)

// attributeDigest is over the attributes that may distinguish two
// events: all but trace context and the like. Each text is preceded by its
// length, so that no two sets share a digest.
func attributeDigest(attributes map[string]string) (sum [sha256.Size]byte) {
	if len(attributes) == 0 {
		return noAttributes
	}
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if lint.Benign(name) {
			continue
		}
		for _, s := range []string{name, attributes[name]} {
			text = binary.BigEndian.AppendUint64(text, uint64(len(s)))
			text = append(text, s...)
		}
	}
	return sha256.Sum256(text)
}

// isPlain reports whether a message that was composed here surely breaks no rule, so
// that the lint has nothing to find: most messages are plain, and the lint reads
// the whole body. By construction such a body is canonical JSON and has the
// five members, of which source and time are right. The rest is checked here; a message
// that is not plain may still be fine.
func (m *Message) isPlain(maxSize int, payload string) bool {
	return len(m.Attributes) == 0 && len(m.Body) <= maxSize &&
		strings.IndexByte(m.Body, 0xEF) < 0 && // SQS refuses U+FFFE and U+FFFF
		strings.HasPrefix(payload, "{") &&
		m.EventID.Version() == 7 && m.EventID.Variant() == uuid.RFC4122 &&
		lint.CheckDedupeKey(m.DedupeKey) == nil && lint.CheckGroupID(m.Group) == nil
}

const stringType = "String"

// size is what SQS counts of a message and its attributes (F-073).
func (m *Message) size() int {
	n := len(m.Body)
	for name, value := range m.Attributes {
		n += len(name) + len(stringType) + len(value)
	}
	return n
}

// key identifies the event in the producer's memory. A legacy body that is sent
// with Warn need not have a dedupe key.
func (m *Message) key() string {
	if m.DedupeKey == "" {
		return BodyHash(m.Body)
	}
	return m.DedupeKey
}
