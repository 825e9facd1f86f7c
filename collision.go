package sqsfifo

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Reuse tells the two ways apart in which a dedupe key comes back with another
// message.
type Reuse uint8

const (
	// Conflict: the payload differs. The key was given to another event, or it
	// does not name all that tells two events apart.
	Conflict Reuse = iota + 1

	// Drift: the payload is the same; event_time, event_id, event_source or the
	// message group changed. The event was built anew from a source that is not
	// stable. Resend the message that was built first.
	Drift
)

// String returns "conflict" or "drift".
func (r Reuse) String() string {
	if r == Drift {
		return "drift"
	}
	return "conflict"
}

// ConflictError says that the dedupe key of a message was used within the
// deduplication interval for another message, and that the second was never
// sent. SQS would have delivered both as if they had nothing to do with each
// other.
type ConflictError struct {
	Reuse     Reuse
	DedupeKey string

	// BodyHash and Group are those of the refused message, FirstBodyHash and
	// FirstGroup those of the message that has the key.
	BodyHash, FirstBodyHash string
	Group, FirstGroup       string

	// FirstSent is when the first message was sent.
	FirstSent time.Time
}

// Error says what differs and what to do.
func (e *ConflictError) Error() string {
	way := "give each event a key of its own"
	what := "another payload"
	if e.Reuse == Drift {
		what = "the same payload but another event_time, event_id or event_source"
		way = "resend the message that Build returned first"
		if e.BodyHash == e.FirstBodyHash {
			what = fmt.Sprintf("the same body but message group %q, now %q", e.FirstGroup, e.Group)
			way = "derive the group from what does not change"
		}
	}
	return fmt.Sprintf("sqsfifo: dedupe key %q refused, not sent: it was sent at %s with %s; %s",
		e.DedupeKey, e.FirstSent.UTC().Format(time.RFC3339), what, way)
}

// ErrorType returns "conflict" or "drift", the value of the OpenTelemetry
// attribute error.type.
func (e *ConflictError) ErrorType() string { return e.Reuse.String() }

// sent is what the producer remembers of a message for the length of the
// deduplication interval.
type sent struct {
	body, payload, attributes [sha256.Size]byte
	group                     string

	// messageID and sequence are empty while no answer is known.
	messageID, sequence string
}

// memory is the producer's own deduplication interval. It is safe for
// concurrent use. It starts empty: what another process, or this one before a
// restart, has sent is known from the answers of SQS alone.
type memory struct {
	mu   sync.Mutex
	sent *window.Window[sent] // by dedupe key

	// highest holds the highest sequence number known of a message group. A
	// mark older than the interval is of no use: the original of a duplicate
	// that is still suppressed was accepted after it.
	highest *window.Window[string] // by group
}

// clockSlack allows for clocks that do not run alike: the end of an interval is
// known to the sender only up to it.
const clockSlack = 5 * time.Second

func newMemory() *memory {
	o := window.Options{Slack: clockSlack}
	return &memory{sent: window.New[sent](o), highest: window.New[string](o)}
}

// claim is what was known before the first attempt of a message.
type claim struct {
	// first is set where this claim opened the record, and not an earlier send.
	first bool

	// prior is the message ID that SQS gave the same message earlier, or "".
	prior string

	// watermark is the highest sequence number of the group, or "".
	watermark string
}

// claim opens a record for the message, or finds the one that it has. A message
// with the key and another body, group or set of attributes is a collision and
// returned as a [*ConflictError] or [*ViolationError].
func (m *memory) claim(now time.Time, msg *Message, s sent) (claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var c claim
	if mark, state := m.highest.Lookup(now, window.Key{ID: msg.Group}); state != window.Outside {
		c.watermark = mark.Value
	}
	k := window.Key{ID: msg.DedupeKey}
	r, state := m.sent.Lookup(now, k)
	if state == window.Outside {
		c.first = true
		return c, m.sent.Put(now, k, window.Record[sent]{From: now, Value: s})
	}
	was := r.Value
	switch {
	case was.body != s.body || was.group != s.group:
		reuse := Conflict
		if was.payload == s.payload {
			reuse = Drift
		}
		return c, &ConflictError{
			Reuse: reuse, DedupeKey: msg.DedupeKey,
			BodyHash: fmt.Sprintf("%x", s.body), FirstBodyHash: fmt.Sprintf("%x", was.body),
			Group: s.group, FirstGroup: was.group, FirstSent: r.From,
		}
	case was.attributes != s.attributes:
		return c, attributeCollision(msg)
	}
	c.prior = was.messageID
	return c, nil
}

// attributeCollision is the second message of a body whose attributes changed.
func attributeCollision(msg *Message) error {
	names := slices.Sorted(maps.Keys(msg.Attributes))
	names = slices.DeleteFunc(names, lint.Benign)
	return &ViolationError{Findings: []lint.Finding{finding(ruleAttributeOnly, "MessageAttributes", "",
		fmt.Sprintf("this body was sent within the deduplication interval with other attributes than %s; SQS ignores attributes, would drop this message and deliver the first",
			strings.Join(names, ", ")))}}
}

// stored records SQS's answer to a message that was claimed at from, and
// reports whether SQS had the message already.
func (m *memory) stored(now, from time.Time, msg *Message, s sent, c claim) (duplicate bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, group := window.Key{ID: msg.DedupeKey}, window.Key{ID: msg.Group}

	// The same message ID is the same message (F-001). A sequence number that is
	// not above the highest one known before the first attempt belongs to an
	// earlier message, because they increase within a group (F-009 b, F-041).
	duplicate = c.prior != "" && s.messageID == c.prior || !isAfter(s.sequence, c.watermark)

	r, state := m.sent.Lookup(now, k)
	switch {
	case state == window.Outside || s.messageID != r.Value.messageID && !duplicate:
		// A new acceptance: it happened between the first attempt and now.
		r = window.Record[sent]{From: from, To: now}
	case r.To.IsZero():
		// The original is older than this call and nothing more is known of it;
		// to remember it for longer than SQS does errs on the safe side.
		r.To = now
	}
	r.Value = s
	// Neither window has a limit, so that neither can be full.
	_ = m.sent.Put(now, k, r)
	if mark, state := m.highest.Lookup(now, group); state == window.Outside || isAfter(s.sequence, mark.Value) {
		_ = m.highest.Put(now, group, window.Record[string]{From: now, To: now, Value: s.sequence})
	}
	return duplicate
}

// unanswered records that a message may or may not have been stored up to now.
func (m *memory) unanswered(now time.Time, msg *Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := window.Key{ID: msg.DedupeKey}
	if r, state := m.sent.Lookup(now, k); state != window.Outside && r.To.IsZero() {
		r.To = now
		_ = m.sent.Put(now, k, r)
	}
}

// refused forgets a claim: a refused send claims nothing in SQS either (F-023).
func (m *memory) refused(msg *Message, c claim) {
	if !c.first {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent.Delete(window.Key{ID: msg.DedupeKey})
}

// isAfter reports whether sequence number a is above b. They are decimal
// numbers of more than 64 bits without leading zeros (F-008); what is not
// comparable counts as after, which claims no duplicate.
func isAfter(a, b string) bool {
	if !isDigits(a) || !isDigits(b) || len(a) > len(b) {
		return true
	}
	return len(a) == len(b) && a > b
}
