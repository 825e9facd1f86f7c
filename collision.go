package sqsfifo

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
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
	EventID   uuid.UUID
	DedupeKey string

	// BodyHash and Group are those of the refused message. SameBody tells that
	// the first message has this body, too, and went to another group.
	BodyHash string
	Group    string
	SameBody bool

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
		if e.SameBody {
			what = fmt.Sprintf("the same body to another message group than %q", e.Group)
			way = "derive the group from what does not change"
		}
	}
	return fmt.Sprintf("sqsfifo: event %v refused, not sent: its dedupe key was sent at %s with %s; %s",
		e.EventID, e.FirstSent.UTC().Format(time.RFC3339), what, way)
}

// ErrorType returns "conflict" or "drift", the value of the OpenTelemetry
// attribute error.type.
func (e *ConflictError) ErrorType() string { return e.Reuse.String() }

// sent is a message as far as it takes part in deduplication. It is made once
// for a message, whatever the number of its attempts.
type sent struct {
	body       [sha256.Size]byte
	digest     digest.Sum // of the body, made while it is in the cache
	is         remembered
	key, group window.Key
}

// remembered is what the producer knows of a message for the length of the
// deduplication interval: 32 bytes without pointers, because there are as many
// as a fast producer sends in five minutes.
type remembered struct {
	// same is of body, group and attributes: two messages with one key are the
	// same if it is. It is long enough that no two others share it.
	same [16]byte

	// answer is of the message ID, or one of the two below.
	answer uint64

	// What is left tells in which way two messages are not the same. It decides
	// nothing else.
	body           uint32
	payload, group uint16
}

const (
	noAnswer      = 0 // is known
	alteredAnswer = 1 // SQS took something else for the message and will take no other
)

// of returns the part of a message that is remembered. The message has to have
// passed the lint.
func (m *memory) of(msg *Message) sent {
	s := sent{
		body:   sha256.Sum256(bytesOf(msg.Body)),
		digest: digest.Of(msg.Body),
		key:    m.sent.Key("", msg.DedupeKey),
		group:  m.highest.Key("", msg.Group),
	}
	attributes := attributeDigest(msg.Attributes)
	var text [2*sha256.Size + 128]byte // what SQS allows of a group
	t := append(text[:0], s.body[:]...)
	t = append(t, attributes[:]...)
	t = append(t, msg.Group...)
	same := sha256.Sum256(t)
	s.is = remembered{
		same:    [16]byte(same[:]),
		body:    binary.BigEndian.Uint32(s.body[:]),
		payload: uint16(maphash.String(m.seed, payloadOf(msg.Body))),
		group:   uint16(maphash.String(m.seed, msg.Group)),
	}
	return s
}

// answerOf is noAnswer for an empty message ID alone.
func (m *memory) answerOf(messageID string) uint64 {
	if messageID == "" {
		return noAnswer
	}
	return max(maphash.String(m.seed, messageID), alteredAnswer+1)
}

// memory is the producer's own deduplication interval. It is safe for
// concurrent use. It starts empty: what another process, or this one before a
// restart, has sent is known from the answers of SQS alone.
type memory struct {
	seed        maphash.Seed // of what decides nothing, or is asked of one key alone
	acceptTimes bool         // read them from sequence numbers

	mu   sync.Mutex
	sent *window.Window[remembered] // by dedupe key

	// highest holds the highest sequence number known of a message group. A
	// mark older than the interval is of no use: the original of a duplicate
	// that is still suppressed was accepted after it.
	highest *window.Window[sequence] // by group
}

// clockSlack allows for clocks that do not run alike: the end of an interval is
// known to the sender only up to it.
const clockSlack = 5 * time.Second

func newMemory(acceptTimes bool) *memory {
	o := window.Options{Slack: clockSlack}
	return &memory{seed: maphash.MakeSeed(), acceptTimes: acceptTimes, sent: window.New[remembered](o), highest: window.New[sequence](o)}
}

// claim is what was known before the first attempt of a message.
type claim struct {
	// first is set where this claim opened the record, and not an earlier send.
	first bool

	// prior is of the message ID that SQS gave the same message earlier, or zero.
	prior uint64

	// watermark is the highest sequence number of the group, or none.
	watermark sequence

	// doubtful is when the message was first sent, if nobody knows whether SQS took
	// it then. It is zero for one that was not sent, or answered.
	doubtful time.Time
}

// claim opens a record for the message, or finds the one that it has. A message
// with the key and another body, group or set of attributes is a collision and
// returned as a [*ConflictError] or [*ViolationError]; one that SQS would drop for
// something else that it took under its ID, as a [*DigestError]. Without room for
// one more record the message is refused with a [*RefusedError].
func (m *memory) claim(now time.Time, msg *Message, s sent) (claim, error) {
	is := s.is
	m.mu.Lock()
	defer m.mu.Unlock()
	var c claim
	if mark, state := m.highest.Lookup(now, s.group); state != window.Outside {
		c.watermark = mark.Value
	}
	r, state := m.sent.Lookup(now, s.key)
	if state == window.Outside {
		if err := m.sent.Put(now, s.key, window.Record[remembered]{From: now, Value: is}); err != nil {
			return c, &RefusedError{EventID: msg.EventID, DedupeKey: msg.DedupeKey, Err: err}
		}
		c.first = true
		return c, nil
	}
	was := r.Value
	switch {
	case was.same == is.same && was.answer == alteredAnswer:
		return c, alteredBefore(msg, r.To)
	case was.same == is.same:
		c.prior = was.answer
		if was.answer == noAnswer {
			c.doubtful = r.From
		}
		return c, nil
	case was.body == is.body && was.group == is.group:
		return c, attributeCollision(msg)
	}
	reuse := Conflict
	if was.payload == is.payload {
		reuse = Drift
	}
	return c, &ConflictError{
		Reuse: reuse, EventID: msg.EventID, DedupeKey: msg.DedupeKey,
		BodyHash: s.bodyHash(), Group: msg.Group, SameBody: was.body == is.body,
		FirstSent: r.From,
	}
}

// collision returns the findings of an error of claim, nil if it is none.
func collision(err error) []lint.Finding {
	var violation *ViolationError
	var conflict *ConflictError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &violation):
		return violation.Findings
	case errors.As(err, &conflict) && conflict.SameBody:
		return []lint.Finding{finding(ruleOtherGroup, "MessageGroupId", "", err.Error())}
	case errors.As(err, &conflict):
		return []lint.Finding{finding(ruleKeyReused, "MessageBody", "/dedupe_key", err.Error())}
	}
	return nil
}

// replace puts the message in the place of the one that it collides with, which is
// sent all the same. With one body SQS takes it for the other.
func (m *memory) replace(now time.Time, s sent, c claim) (claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, state := m.sent.Lookup(now, s.key); state != window.Outside && r.Value.body == s.is.body {
		c.prior = r.Value.answer
	}
	m.sent.Delete(s.key)
	c.first = true
	return c, m.sent.Put(now, s.key, window.Record[remembered]{From: now, Value: s.is})
}

// attributeCollision is the second message of a body whose attributes changed.
func attributeCollision(msg *Message) error {
	names := slices.Sorted(maps.Keys(msg.Attributes))
	names = slices.DeleteFunc(names, lint.Benign)
	return &ViolationError{plain: true, Findings: []lint.Finding{finding(ruleAttributeOnly, "MessageAttributes", "",
		fmt.Sprintf("this body was sent within the deduplication interval with other attributes than %s; SQS ignores attributes, would drop this message and deliver the first",
			strings.Join(names, ", ")))}}
}

// stored records SQS's answer to a message that was claimed at from, and
// reports whether SQS had the message already.
func (m *memory) stored(now, from time.Time, s sent, c claim, messageID, sequenceNumber string) (duplicate bool) {
	is, number := s.is, parseSequence(sequenceNumber)
	is.answer = m.answerOf(messageID)
	m.mu.Lock()
	defer m.mu.Unlock()

	// The same message ID is the same message (F-001), of an earlier send or of
	// one in the same request. A sequence number that is not above the highest one
	// known before the first attempt belongs to an earlier message, because they
	// increase within a group (F-009 b, F-041).
	r, state := m.sent.Lookup(now, s.key)
	duplicate = is.answer != noAnswer && (is.answer == c.prior || state != window.Outside && is.answer == r.Value.answer) ||
		!number.isAfter(c.watermark) || m.acceptTimes && number.acceptedBefore(from, now)

	switch {
	case state == window.Outside || is.answer != r.Value.answer && !duplicate:
		// A new acceptance: it happened between the first attempt and now.
		r = window.Record[remembered]{From: from, To: now}
	case r.To.IsZero():
		// The original is older than this call and nothing more is known of it;
		// to remember it for longer than SQS does errs on the safe side.
		r.To = now
	}
	r.Value = is
	// Neither window has a limit of its own, and the claim had its place in sent: a
	// mark that finds none costs no more than the sight of a duplicate.
	_ = m.sent.Put(now, s.key, r)
	if mark, state := m.highest.Lookup(now, s.group); state == window.Outside || number.isAfter(mark.Value) {
		_ = m.highest.Put(now, s.group, window.Record[sequence]{From: now, To: now, Value: number})
	}
	return duplicate
}

// unanswered records that a message may or may not have been stored up to now.
func (m *memory) unanswered(now time.Time, s sent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, state := m.sent.Lookup(now, s.key); state != window.Outside && r.Value.answer == noAnswer {
		r.To = now // the last attempt may be the one that SQS took
		_ = m.sent.Put(now, s.key, r)
	}
}

// altered records that SQS took something else than the message. While it would
// take the message itself for a duplicate of that, there must be no other attempt.
func (m *memory) altered(now time.Time, s sent, c claim, err error) {
	var what *DigestError
	if !errors.As(err, &what) || what.ResendAfter.IsZero() {
		m.refused(now, s, c)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, state := m.sent.Lookup(now, s.key)
	if state != window.Outside && r.Value.answer != noAnswer {
		return // SQS has the message from an earlier send
	}
	r = window.Record[remembered]{From: now, To: now, Value: s.is}
	r.Value.answer = alteredAnswer
	_ = m.sent.Put(now, s.key, r)
}

// refused forgets a claim: a refused send claims nothing in SQS either (F-023). A
// copy of the message in the same request may have been stored.
func (m *memory) refused(now time.Time, s sent, c claim) {
	if !c.first {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, state := m.sent.Lookup(now, s.key); state != window.Outside && r.Value.answer == noAnswer {
		m.sent.Delete(s.key)
	}
}

// sequence is a sequence number: a decimal number of up to 128 bits (F-008). The
// zero value is none.
type sequence struct {
	high, low uint64
	known     bool
}

// parseSequence returns none for what is not such a number.
func parseSequence(text string) sequence {
	n := sequence{known: text != ""}
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return sequence{}
		}
		over, high := bits.Mul64(n.high, 10)
		carry, low := bits.Mul64(n.low, 10)
		low, once := bits.Add64(low, uint64(c-'0'), 0)
		high, twice := bits.Add64(high, carry, once)
		if over|twice != 0 {
			return sequence{}
		}
		n.high, n.low = high, low
	}
	return n
}

// isAfter reports whether a is above b. What is not comparable counts as after,
// which claims no duplicate.
func (a sequence) isAfter(b sequence) bool {
	return !a.known || !b.known || a.high > b.high || a.high == b.high && a.low > b.low
}

// acceptedBefore reports whether the number says that SQS accepted its message
// before from, within an interval that lasts at now: 2^64 and, in units of 256,000
// a millisecond, the time since 1970 (F-008, seen and not documented). A number
// that says something else says nothing.
func (a sequence) acceptedBefore(from, now time.Time) bool {
	const perMilli = 256_000
	if !a.known || a.high != 1 {
		return false
	}
	accepted := time.UnixMilli(int64(a.low / perMilli)) // #nosec G115 -- less than 2^47
	return accepted.Before(from.Add(-clockSlack)) && accepted.After(now.Add(-window.Interval-clockSlack))
}
