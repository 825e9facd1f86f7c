package lint

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attrname"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/textview"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// QueueChecker checks the messages of one queue, in the order of their sends. Create a QueueChecker
// with [NewQueueChecker].
//
// A QueueChecker applies the rules about single messages, and the rules SF060 to SF064, which
// compare a message with earlier messages. It remembers a message for five minutes, like
// SQS; an equal message does not extend this time. An unchanged message may be sent again
// without a finding of SF060 to SF064.
//
// A QueueChecker is safe for concurrent use; the order is the order of the calls. It stores about
// 250 bytes for each message, and none of the message's text. It stores at most 33 million
// deduplication IDs, dedupe keys and event IDs each, and does not find the reuse of others.
type QueueChecker struct {
	mu   sync.Mutex
	n    int // messages so far
	last time.Time

	byID    *window.Window[sighting] // deduplication ID
	byKey   *window.Window[sighting] // dedupe key
	byEvent *window.Window[sighting] // event ID
}

// sighting describes a message for comparisons with later messages: its number in the
// stream, and hashes of its parts.
type sighting struct {
	n                                     int
	untimed                               bool
	body, payload, attributes, group, key fingerprint

	// retry is the fingerprint of the attributes that a retry may change.
	retry fingerprint
}

type fingerprint [8]byte

// NewQueueChecker returns a stream without messages.
func NewQueueChecker() *QueueChecker {
	o := window.Options{}
	return &QueueChecker{last: time.Unix(0, 0), byID: window.New[sighting](o), byKey: window.New[sighting](o), byEvent: window.New[sighting](o)}
}

// Check returns the findings of the function [Check], and findings of the rules SF060 to
// SF064. The latter name the earlier message by its time and its number, counted from 1.
//
// The parameter `at` is the time of the send. It must not be earlier than in the previous
// call. The zero time stands for an unknown time: the message counts as sent at the time of
// the one before it.
func (s *QueueChecker) Check(at time.Time, m Message) []Finding {
	b, fs := Contract{m.Organization}.checkBody(m.Body)
	fs = slices.Concat(fs, checkOutsideBody(m, b))
	is := sighting{
		untimed: at.IsZero(), body: fingerprintOf(m.Body), group: fingerprintOf(m.GroupID),
		attributes: fingerprintOfAttributes(m.Attributes, NeverIdentifies),
		retry:      fingerprintOfAttributes(m.Attributes, func(name string) bool { return !attrname.Retry(name) }),
	}
	id := m.DeduplicationID
	if id == "" {
		id = bodyHash(m.Body)
	}
	key, event := b.memberText("dedupe_key"), b.memberText("event_id")
	is.key = fingerprintOf(key)
	if i := index(b.members, "payload"); i >= 0 {
		is.payload = fingerprintOf(b.text[b.members[i].start:b.members[i].end])
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if is.untimed {
		at = s.last
	}
	s.last = at
	s.n++
	is.n = s.n
	if was, since, ok := s.earlier(s.byID, at, id, is); ok {
		fs = append(fs, sameID(m, is, was, since)...)
	}
	if key != "" {
		if was, since, ok := s.earlier(s.byKey, at, key, is); ok && was.body != is.body {
			what := "another payload: the key was given to another event"
			if was.payload == is.payload {
				what = "the same payload in another envelope: the event was built again from a source that is not stable"
			}
			fs = append(fs, inBody(keyReused, "/dedupe_key", b.offsetOf("dedupe_key"),
				fmt.Sprintf("dedupe_key %s was sent %s with %s", quote(key), ago(was, since), what)))
		}
	}
	if event != "" {
		if was, since, ok := s.earlier(s.byEvent, at, event, is); ok && was.key != is.key {
			fs = append(fs, inBody(eventIDReused, "/event_id", b.offsetOf("event_id"),
				fmt.Sprintf("event_id %s was sent %s with another dedupe_key", quote(event), ago(was, since))))
		}
	}
	sortFindings(fs)
	return fs
}

// earlier searches the window w for a message with this id, and returns the message and the
// time of its send. If there is none, earlier stores the current message in w and returns
// false. The caller holds s.mu.
func (s *QueueChecker) earlier(w *window.Window[sighting], at time.Time, id string, current sighting) (sighting, time.Time, bool) {
	k := w.Key("", id)
	if r, state := w.Lookup(at, k); state != window.Outside {
		return r.Value, r.From, true
	}
	_ = w.Put(at, k, window.Record[sighting]{From: at, To: at, Value: current}) // fails if the window is full
	return sighting{}, time.Time{}, false
}

// sameID returns findings if the message m differs from an earlier message with the same
// deduplication ID: SQS may drop m as a duplicate.
func sameID(m Message, is, was sighting, since time.Time) []Finding {
	if was.body != is.body {
		return []Finding{found(dedupIDReused, "MessageDeduplicationId", fmt.Sprintf(
			"MessageDeduplicationId %s was sent %s with another body: SQS drops this message", quote(m.DeduplicationID), ago(was, since)))}
	}
	var fs []Finding
	if was.attributes != is.attributes || was.retry != is.retry {
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(m.Attributes)), func(name string) bool { return NeverIdentifies(name) && !attrname.Retry(name) })
		have := "none"
		if len(names) > 0 {
			have = shorten(strings.Join(names, ", "), excerptName)
		}
		f := found(bodyWithOtherAttr, "MessageAttributes", fmt.Sprintf(
			"this body was sent %s with other attributes than this message has (%s): SQS drops this message", ago(was, since), have))
		if was.attributes == is.attributes {
			f.Severity = Info
			f.Message += ", which is right for a retry; consumers see the first attempt's attributes"
			f.Fix = "leave the body as it is: the number or ID of the attempt in the body would make each retry another event"
		}
		fs = append(fs, f)
	}
	if was.group != is.group {
		fs = append(fs, found(bodyInOtherGroup, "MessageGroupId", fmt.Sprintf(
			"this body was sent %s to another message group than %s", ago(was, since), quote(m.GroupID))))
	}
	return fs
}

func ago(was sighting, since time.Time) string {
	if was.untimed {
		return fmt.Sprintf("as message %d", was.n)
	}
	return fmt.Sprintf("as message %d at %s", was.n, since.UTC().Format(time.RFC3339Nano))
}

// memberText returns the text of a string member, or "".
func (b body) memberText(name string) string {
	i := index(b.members, name)
	if i < 0 || b.text[b.members[i].start] != '"' {
		return ""
	}
	return unquote(b.text[b.members[i].start:b.members[i].end])
}

func (b body) offsetOf(name string) int { return b.members[index(b.members, name)].start }

func fingerprintOf(s string) (f fingerprint) {
	sum := sha256.Sum256(textview.Bytes(s))
	return fingerprint(sum[:])
}

// fingerprintOfAttributes hashes the attributes whose names the function `skip` does not
// exclude. It hashes the length before each text, so that different attributes are always different
// bytes.
func fingerprintOfAttributes(attributes map[string]Attribute, skip func(name string) bool) fingerprint {
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if skip(name) {
			continue
		}
		a := attributes[name]
		for _, part := range [...]string{name, a.DataType, a.StringValue, string(a.BinaryValue)} {
			text = binary.BigEndian.AppendUint64(text, uint64(len(part)))
			text = append(text, part...)
		}
	}
	return fingerprintOf(string(text))
}
