package process

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/maphash"
	"unsafe"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// Event holds the parts of a message that a Memory compares: dedupe key, hashes of body
// and group, and digests.
//
// [Memory.Event] computes an Event once per message, for any number of submissions and
// attempts. Pass an Event only to the Memory that computed it. Only this Memory may read
// or change the fields.
type Event struct {
	dedupeKey string
	body      [sha256.Size]byte
	is        fingerprint
	group     uint64     // hash, never zero
	key       window.Key // record key

	at window.Hint // position of the record in the window, as found by the last lookup; guarded by Memory.mu
}

// fingerprint has digests of a message. A record has only these digests and not the
// message.
type fingerprint struct {
	// same identifies the body and the message group: it is the start of the body's
	// SHA-256, XORed with a secretly seeded hash of the group.
	same [12]byte

	// attributes has the first four bytes of a digest of the identity attributes.
	attributes uint32

	// body and payload are digests. The payload is the part of the body that stays the
	// same when the caller builds the event again.
	body, payload uint32
}

// Event returns a message's Event.
//
// The parameter `payload` is the part of the body that stays the same when the caller builds
// the event again; other parts, such as a time, may differ.
//
// The parameter `attributes` is a digest of the identity attributes: all attributes that may
// make two messages with the same body two different events.
func (m *Memory) Event(dedupeKey, group, body, payload string, attributes [32]byte) Event {
	// #nosec G103 -- avoids a copy of the body; Sum256 only reads the bytes.
	sum := sha256.Sum256(unsafe.Slice(unsafe.StringData(body), len(body)))
	of := maphash.String(m.seed, group)
	same := [12]byte(sum[:])
	binary.BigEndian.PutUint64(same[:], binary.BigEndian.Uint64(same[:])^of)
	return Event{
		dedupeKey: dedupeKey,
		body:      sum,
		is: fingerprint{
			same:       same,
			attributes: binary.BigEndian.Uint32(attributes[:]),
			body:       binary.BigEndian.Uint32(sum[:]),
			payload:    uint32(maphash.String(m.seed, payload)),
		},
		group: max(of, 1),
		key:   m.sent.Key("", dedupeKey),
	}
}

// BodyHash returns the body's SHA-256 in lowercase hex. SQS uses this hash as the
// content-based deduplication ID (F-011).
func (e *Event) BodyHash() string {
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], e.body[:])
	return string(text[:])
}

// separateKey returns a second key for an event's record. The record gets this key if
// another event already has a record under the dedupe key.
func (m *Memory) separateKey(e *Event) window.Key {
	var of [16]byte
	copy(of[:], e.is.same[:])
	binary.BigEndian.PutUint32(of[12:], e.is.attributes)
	return m.sent.Key(string(of[:]), e.dedupeKey)
}

// collision returns the difference between two events with the same dedupe key.
// f is the new event's fingerprint. The parameter `earlier` is the fingerprint in the
// record.
func (f fingerprint) collision(earlier fingerprint) verdict.Reuse {
	switch {
	case f.same == earlier.same:
		return verdict.ReuseOtherAttributes
	case f.body == earlier.body:
		return verdict.ReuseOtherGroup
	case f.payload == earlier.payload:
		return verdict.ReuseOtherBody
	default:
		return verdict.ReuseOtherPayload
	}
}
