package sqsfifo

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/jsondiff"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Message is the message of one event, built by [Producer.Build]. It is plain data: store
// it as JSON in the event's transaction, and pass it to [Producer.SendMessage] later, on
// any machine, as often as needed. Do not change its body.
type Message struct {
	// Group is the message group ID: messages of one group are delivered in order.
	Group string `json:"group"`

	// DedupeKey and EventID repeat members of the body, for lookups.
	DedupeKey string    `json:"dedupe_key"`
	EventID   uuid.UUID `json:"event_id"`

	// Body is the canonical envelope, the bytes that SQS hashes.
	Body string `json:"body"`

	// Attributes are routing hints. SQS does not use them for deduplication.
	Attributes map[string]string `json:"attributes,omitempty"`

	// Dataset is the event's dataset for telemetry, or nil.
	Dataset *Dataset `json:"dataset,omitempty"`

	unstable []lint.Finding // the event gave another message when it was built again
}

// ReplayAttribute is the message attribute with the name of a replay run. Package replay
// sets it, and spans and provenance records mark such a message as a replay. The attribute
// is not part of the identity, and SQS does not use it for deduplication.
const ReplayAttribute = "sqsfifo-replay-run"

func (m *Message) isReplay() bool { return m.Attributes[ReplayAttribute] != "" }

func (m *Message) clone() *Message {
	c := *m
	c.Attributes, c.Dataset = maps.Clone(m.Attributes), m.Dataset.clone()
	return &c
}

const payloadMember = `,"payload":`

// payloadOf returns the payload of a body that passed the lint. Such a body has the
// payload last. Before the payload, the text payloadMember cannot occur, because inside a
// string its quotes would be escaped.
func payloadOf(body string) string {
	_, payload, _ := strings.Cut(body, payloadMember)
	return strings.TrimSuffix(payload, "}")
}

// verify returns an error if the caller has changed DedupeKey or EventID since Build, so
// that they differ from the body. The body must have passed the lint.
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

// source returns the body's event_source, or "".
func (m *Message) source() string {
	before, _, _ := strings.Cut(m.Body, payloadMember)
	_, source, _ := strings.Cut(before, `"event_source":"`)
	source, _, _ = strings.Cut(source, `"`)
	return source
}

var noAttributes = sha256.Sum256(nil)

// attributeDigest returns the digest of the attributes that may distinguish two events.
// Trace context and similar attributes are excluded. Each text is preceded by its
// length, so that different sets have different digests.
func attributeDigest(attributes map[string]string) (sum [sha256.Size]byte) {
	if len(attributes) == 0 {
		return noAttributes
	}
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if lint.NeverIdentifies(name) {
			continue
		}
		for _, s := range []string{name, attributes[name]} {
			text = binary.BigEndian.AppendUint64(text, uint64(len(s)))
			text = append(text, s...)
		}
	}
	return sha256.Sum256(text)
}

// isCertainlyValid reports whether a message built by this process certainly breaks no
// rule of package lint. It is faster than package lint, because it omits the rules that
// Build ensures. It may return false for a valid message.
func (m *Message) isCertainlyValid(maxSize int, payload string) bool {
	return len(m.Attributes) == 0 && len(m.Body) <= maxSize &&
		strings.IndexByte(m.Body, 0xEF) < 0 && // first byte of U+FFFE and U+FFFF, which SQS refuses
		strings.HasPrefix(payload, "{") && !mayBeTooDeep(payload) &&
		m.EventID.Version() == 7 && m.EventID.Variant() == uuid.RFC4122 &&
		lint.CheckDedupeKey(m.DedupeKey) == nil && lint.CheckGroupID(m.Group) == nil
}

// mayBeTooDeep reports whether the body may exceed MaxDepth levels of nesting: the levels
// of the payload and one level of the envelope. It only counts brackets, so the result
// may be true for a valid payload.
func mayBeTooDeep(payload string) bool {
	const limit = canonicaljson.MaxDepth
	// Each level has an opening and a closing bracket, so a short payload needs no counting.
	return len(payload) >= 2*limit && strings.Count(payload, "{")+strings.Count(payload, "[") >= limit
}

const stringType = "String"

// size returns the size of a message and its attributes in bytes, as SQS counts it.
func (m *Message) size() int {
	n := len(m.Body)
	for name, value := range m.Attributes {
		n += len(name) + len(stringType) + len(value)
	}
	return n
}

// key returns the key of the event in the producer's memory. A body without a dedupe key,
// which may be sent with EnforcementWarn, has its hash as the key.
func (m *Message) key() string {
	if m.DedupeKey == "" {
		return BodyHash(m.Body)
	}
	return m.DedupeKey
}

// replaced returns a copy of the message with the body, group and event ID of a message
// from the store.
func (m *Message) replaced(by memory.Message) *Message {
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

// purityPeriod: a producer builds its first event twice, and every purityPeriod-th event
// after it.
const purityPeriod = 10_000

// differences returns a finding for each part in which two messages of one event differ.
// The findings contain no values.
func (m *Message) differences(again *Message) (fs []lint.Finding) {
	add := func(rule, field, pointer string, was, is any) {
		a, b := kindOf(was), kindOf(is)
		if a == b {
			b = "another one"
		}
		fs = append(fs, finding(rule, field, pointer, fmt.Sprintf("this event was built twice and had %s here, then %s: a clock, a random number, a counter, "+
			"an address or the order of a map is in Identify, Attributes or MarshalJSON, and a retry would be another message", a, b)))
	}
	if m.Group != again.Group {
		add(ruleRandomGroup, "Identity.Group", "", m.Group, again.Group)
	}
	attributes := map[string]string{}
	maps.Copy(attributes, m.Attributes)
	maps.Copy(attributes, again.Attributes)
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if was, is := m.Attributes[name], again.Attributes[name]; was != is && !lint.NeverIdentifies(name) {
			add(ruleAttributeOnly, fmt.Sprintf("MessageAttributes[%q]", name), "", was, is)
		}
	}
	if m.Body == again.Body {
		return fs
	}
	var was, is map[string]any
	// Both bodies are JSON objects, because this package has encoded them.
	_, _ = json.Unmarshal([]byte(m.Body), &was), json.Unmarshal([]byte(again.Body), &is)
	for _, member := range []struct{ name, rule, field string }{
		{"dedupe_key", ruleRandomKey, "Identity.DedupeKey"},
		{"event_time", ruleVolatileBody, "Identity.Time"},
		{"payload", ruleVolatileBody, "MessageBody"},
		{"event_id", ruleVolatileBody, "Identity.EventID"}, // last, because it may follow from the others
	} {
		pointer, a, b := jsondiff.First("/"+member.name, was[member.name], is[member.name])
		if pointer != "" && (member.name != "event_id" || len(fs) == 0) {
			add(member.rule, member.field, pointer, a, b)
		}
	}
	return fs
}

// kindOf describes a JSON value without showing it.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string:
		if _, err := time.Parse(time.RFC3339, v); err == nil {
			return "a time"
		}
		if uuid.Validate(v) == nil {
			return "a UUID"
		}
		return fmt.Sprintf("a text of %d bytes", len(v))
	case []any:
		return fmt.Sprintf("an array of %d", len(v))
	case map[string]any:
		return "an object"
	case bool:
		return "a boolean"
	default:
		return "a number"
	}
}
