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

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/textview"
)

// MaxDedupeKeyBytes is the maximum length of a dedupe key in bytes of UTF-8.
const MaxDedupeKeyBytes = 1024

// JoinKey joins parts to one readable dedupe key. Equal parts give equal keys on every
// machine and in every version of this module.
//
// The separator is "|". JoinKey escapes "|" and "\" inside a part with "\", so different
// lists of parts give different keys: ("a|b", "c") gives a\|b|c and ("a", "b|c") gives
// a|b\|c.
//
// The error is an [*InvalidError] in these cases:
//
//   - there are no parts, or a part is empty
//   - a part contains invalid UTF-8 or a control character
//   - the key begins or ends with a space, or is longer than [MaxDedupeKeyBytes]
func JoinKey(parts ...string) (string, error) {
	if len(parts) == 0 {
		return "", invalid("parts", "a key needs at least one part; name what identifies the event")
	}
	var b strings.Builder
	length := len(parts)
	for _, p := range parts {
		length += len(p)
	}
	b.Grow(min(length, MaxDedupeKeyBytes))
	for i, p := range parts {
		rule := textFault(p)
		if p == "" {
			rule = "empty; an unset part would make different events one, leave it out or give it a value"
		}
		if rule == "" && (i == 0 && strings.TrimLeftFunc(p, unicode.IsSpace) != p || i == len(parts)-1 && strings.TrimRightFunc(p, unicode.IsSpace) != p) {
			rule = "a space at the end of the key, so that the key differs from the same one without it; trim the part"
		}
		if rule != "" {
			return "", invalid(fmt.Sprintf("part %d", i+1), rule)
		}
		if i > 0 {
			b.WriteByte('|')
		}
		b.WriteString(escapeKeyPart.Replace(p))
	}
	if b.Len() > MaxDedupeKeyBytes {
		return "", invalid("key", fmt.Sprintf("%d bytes, more than %d; hash the long part and join its hash", b.Len(), MaxDedupeKeyBytes))
	}
	return b.String(), nil
}

var escapeKeyPart = strings.NewReplacer(`|`, `\|`, `\`, `\\`)

// textFault returns "" if s may be a part of a key, otherwise an error text.
func textFault(s string) string {
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

// isPlainText reports whether s contains printable ASCII only, like most keys.
func isPlainText(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// BodyHash returns the lower-case hexadecimal SHA-256 of a message body.
//
// A queue with content-based deduplication uses this hash as the deduplication ID.
// Consumers receive it as MessageDeduplicationId (F-011 in sqstest/FACTS.md). Sending the
// hash as an explicit deduplication ID has the same effect (F-014).
func BodyHash(body string) string {
	return hexOf(sha256.Sum256(bytesOf(body)))
}

func hexOf(sum [sha256.Size]byte) string {
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], sum[:])
	return string(text[:])
}

// bytesOf returns the bytes of text without a copy. The caller must not modify them.
func bytesOf(text string) []byte { return textview.Bytes(text) }

// eventIDTag separates the hashes of event IDs from other hashes of the same strings. A
// new tag would change every derived event ID.
const eventIDTag = "sqsfifo event_id v1"

// DeriveEventID returns the UUIDv7 of an event. The same event has the same ID on every
// machine and on every day.
//
// The 48-bit timestamp is the millisecond of eventTime. The other 74 bits are from a
// SHA-256 of source and dedupeKey. An event before 1970 has the timestamp 0, because the
// timestamp is unsigned. The IDs of such events do not sort by time.
//
// Do not use uuid.NewV7 instead: event_id is part of the body, and SQS deduplicates by
// the hash of the body. A fresh ID would give each retry a new hash, and SQS would
// deliver every attempt.
//
// The 74 bits of the hash deviate from RFC 9562. For version 7 the RFC asks for random
// bits (sections 5.7 and 6.9), and for an ID from a SHA-256 it provides version 8
// (section 5.5). The KFM contract requires version 7 (section 4). The timestamp conforms
// to the RFC: it may differ from the time at which the UUID was generated (section 6.1).
//
// Hash bits prevent collisions as well as random bits do. Among a billion events of one
// millisecond, two share an ID with probability below 3e-5.
func DeriveEventID(source, dedupeKey string, eventTime time.Time) uuid.UUID {
	var space [256]byte // enough for most keys
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
