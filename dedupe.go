package sqsfifo

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"github.com/google/uuid"
)

// MaxDedupeKeyBytes is the greatest length of a dedupe key, in bytes of UTF-8.
const MaxDedupeKeyBytes = 1024

// JoinKey joins the parts that identify an event into one readable dedupe key.
//
// Parts are joined with "|". A "|" or "\" inside a part is escaped with "\", so
// that different lists of parts never give the same key: ("a|b", "c") is a\|b|c
// and ("a", "b|c") is a|b\|c. The same parts give the same key on every machine
// and in every version of this module.
//
// It returns a [*KeyError] when there is no part, when a part is empty (an
// unset field would make two events one), not valid UTF-8 or holds a control
// character, and when the key is longer than [MaxDedupeKeyBytes].
func JoinKey(parts ...string) (string, error) {
	if len(parts) == 0 {
		return "", &KeyError{Field: "parts", Rule: "a key needs at least one part; name what identifies the event"}
	}
	var b strings.Builder
	length := len(parts)
	for _, p := range parts {
		length += len(p)
	}
	b.Grow(min(length, MaxDedupeKeyBytes))
	for i, p := range parts {
		rule := textRule(p)
		if p == "" {
			rule = "empty; an unset part would make different events one, leave it out or give it a value"
		}
		if rule != "" {
			return "", &KeyError{Field: fmt.Sprintf("part %d", i+1), Rule: rule}
		}
		if i > 0 {
			b.WriteByte('|')
		}
		for {
			j := strings.IndexAny(p, `|\`)
			if j < 0 {
				b.WriteString(p)
				break
			}
			b.WriteString(p[:j])
			b.WriteByte('\\')
			b.WriteByte(p[j])
			p = p[j+1:]
		}
	}
	if b.Len() > MaxDedupeKeyBytes {
		return "", &KeyError{Field: "key", Rule: fmt.Sprintf("%d bytes, more than %d; hash the long part and join its hash", b.Len(), MaxDedupeKeyBytes)}
	}
	return b.String(), nil
}

// textRule returns the rule that s breaks as a component of a key, or "".
func textRule(s string) string {
	if isPlainText(s) {
		return ""
	}
	if !utf8.ValidString(s) {
		return "not valid UTF-8; encode binary identifiers as hex"
	}
	if i := strings.IndexFunc(s, unicode.IsControl); i >= 0 {
		return fmt.Sprintf("control character at byte %d; remove it", i)
	}
	return ""
}

// isPlainText reports whether s is of printable ASCII alone, as most keys are.
func isPlainText(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// BodyHash returns the lower-case hexadecimal SHA-256 of a message body. It is
// the deduplication ID that a queue with content-based deduplication computes
// and shows to consumers as MessageDeduplicationId (F-011), so sending it as the
// explicit deduplication ID is the same thing (F-014).
func BodyHash(body string) string {
	return hexOf(sha256.Sum256(bytesOf(body)))
}

func hexOf(sum [sha256.Size]byte) string {
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], sum[:])
	return string(text[:])
}

// bytesOf returns the bytes of a text without a copy. They must not be written
// to.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// eventIDTag separates these hashes from all others over the same strings. A
// change of it changes every derived event ID.
const eventIDTag = "sqsfifo event_id v1"

// DeriveEventID returns the UUIDv7 that belongs to an event: the same event has
// the same ID on every machine and on every day.
//
// The 48-bit timestamp is the millisecond of eventTime, the 74 free bits come
// from a SHA-256 over source and dedupeKey. The timestamp of a UUIDv7 is
// unsigned, so times before 1970 have 0 there and differ in the hash
// bits alone; an ID of such an event does not sort by its time.
//
// Why not uuid.NewV7: event_id is part of the body, and SQS deduplicates by the
// hash of the body. A fresh ID for each send gives each retry a new hash, SQS
// accepts each of them, and the event is delivered as often as it was tried.
//
// RFC 9562 wants random bits where this function puts hash bits (sections 5.7
// and 6.9) and files name-based SHA-256 under version 8 (section 5.5). The KFM
// contract (section 4) asks for a version 7, and RFC 9562 section 6.1 does not
// bind the timestamp to the time of generation. What the random bits are for,
// that IDs do not collide, 74 bits of SHA-256 give as well: among a billion
// events of one millisecond two share an ID with probability below 3e-5.
func DeriveEventID(source, dedupeKey string, eventTime time.Time) uuid.UUID {
	var space [256]byte // of most
	text := space[:0]
	for _, s := range [...]string{eventIDTag, source, dedupeKey} {
		text = binary.BigEndian.AppendUint64(text, uint64(len(s)))
		text = append(text, s...)
	}
	sum := sha256.Sum256(text)

	ms := max(eventTime.UnixMilli(), 0)
	var id uuid.UUID
	copy(id[6:], sum[:10])
	binary.BigEndian.PutUint16(id[0:2], uint16(ms>>32)) // #nosec G115 -- the high 16 of 48 bits
	binary.BigEndian.PutUint32(id[2:6], uint32(ms))     // #nosec G115 -- the low 32 of 48 bits
	id[6] = 0x70 | id[6]&0x0f
	id[8] = 0x80 | id[8]&0x3f
	return id
}
