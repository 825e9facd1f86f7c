package dedup

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/maphash"
	"unsafe"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// Event is a message as far as it takes part in deduplication. [Memory.Event] makes it
// once per message, whatever the number of submissions and attempts. It is a value
// for use with that memory only, and by one goroutine at a time.
type Event struct {
	dedupeKey string
	body      [sha256.Size]byte
	is        fingerprint
	group     uint64     // hash, never zero
	key       window.Key // of the record

	at window.Place // of the key, when it was looked up last; the memory's lock guards it
}

// fingerprint is what a record holds of a message.
type fingerprint struct {
	// same is of body and group: the start of the body's SHA-256, with a hash of the
	// group in it whose seed nobody knows. It is long enough that no two events with one
	// dedupe key share it.
	same [12]byte

	// attributes is of those that may carry identity.
	attributes uint32

	// body and payload show in which way two events with one dedupe key differ. They
	// decide nothing else.
	body, payload uint32
}

// Event returns the event of a message. Payload is the part of the body that remains
// the same if the event is built again from an unstable source; attributes is a digest
// of the attributes that may carry identity.
func (m *Memory) Event(dedupeKey, group, body, payload string, attributes [32]byte) Event {
	// #nosec G103 -- no copy of the body; Sum256 does not write to it.
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

// BodyHash returns the SHA-256 of the body in lower-case hex: what SQS takes for the
// deduplication ID (F-011).
func (e *Event) BodyHash() string {
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], e.body[:])
	return string(text[:])
}

// separateKey returns the key of the record that an event has if it was sent in spite of
// a collision, from its dedupe key and its fingerprint. The records of dedupe keys have
// an empty group in its place. It is rarely needed.
func (m *Memory) separateKey(e *Event) window.Key {
	var of [16]byte
	copy(of[:], e.is.same[:])
	binary.BigEndian.PutUint32(of[12:], e.is.attributes)
	return m.sent.Key(string(of[:]), e.dedupeKey)
}

// collision returns in which way an event collides with the one that has its dedupe key.
func (f fingerprint) collision(first fingerprint) Kind {
	switch {
	case f.same == first.same:
		return OtherAttributes
	case f.body == first.body:
		return OtherGroup
	case f.payload == first.payload:
		return Drift
	default:
		return Conflict
	}
}
