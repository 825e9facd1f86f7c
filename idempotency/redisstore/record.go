package redisstore

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// fields lists the hash fields of a record in the order of the scripts' answers. A field
// without a value is empty or absent.
var fields = []string{
	"scope", "operation_type", "key", "generation", "fingerprint_spec", "request_hash", "body_hash", "message_group", "body",
	"response", "message_id", "sequence_number", "status", "token", "fence", "attempts", "lease_until", "doubt_since", "resend_until",
	"failure", "created_at", "expires_at", "dataset_id", "version", "source_uri", "artifact_checksum", "care_label", "replay_safe",
	"prior_status", "prior_created_at", "prior_expires_at",
}

// bucketBits is the number of bits at the start of a key ID that choose its bucket. The
// records of a bucket share one counter for their fences. In a cluster, all Redis keys of a
// bucket are in one slot.
const bucketBits = 12

// names are the Redis keys of one record.
type names struct {
	record, fence, clock string
	bucket               int64
}

// nameOf returns the Redis keys of the record of k. In a cluster all these keys have the
// same three digits in braces: the text in braces determines the slot, and a script can
// only use keys of one slot.
func (s *Store) nameOf(k idempotency.Key) names {
	id := k.ID()
	digits := id.String()
	const tag = bucketBits / 4
	return names{
		record: s.prefix + "idempotency:" + braces.Replace(k.Operation) + ":{" + digits[:tag] + "}" + digits[tag:],
		fence:  s.prefix + "idempotency-fence:{" + digits[:tag] + "}",
		clock:  s.clockName(digits[:tag]),
		bucket: bucketOf(id),
	}
}

// bucketOf returns the first twelve bits of the ID as a number.
func bucketOf(id idempotency.KeyID) int64 { return int64(id[0])<<4 | int64(id[1])>>4 }

// braces escapes braces in the name of an operation: in a cluster, the text in the first
// braces of a Redis key determines the slot.
var braces = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D")

// idOf returns the key ID at the end of a record's name. ok is false for a name without
// an ID.
func idOf(name string) (id idempotency.KeyID, ok bool) {
	const digits, tag = 2 * len(id), bucketBits / 4
	if len(name) < digits+2 {
		return id, false
	}
	end := name[len(name)-digits-2:]
	if end[0] != '{' || end[tag+1] != '}' {
		return id, false
	}
	n, err := hex.Decode(id[:], []byte(end[1:tag+1]+end[tag+2:]))
	return id, err == nil && n == len(id)
}

// sequence returns a fence without its lower bits, the bucket. For a fence of another
// bucket it returns "0", which no claim has.
func (n names) sequence(fence int64) string {
	if fence&(1<<bucketBits-1) != n.bucket {
		return "0"
	}
	return strconv.FormatInt(fence>>bucketBits, 10)
}

var errAnswer = errors.New("redisstore: the answer of the script has another form; the key may have been written by something else")

// parseAnswer parses a script's answer. The answer is a single word, or a word followed by
// the server's time, the fields of a record, and the time for answer.stepped. This last
// time is "" if the script detected no clock step.
func parseAnswer(values []any) (answer, error) {
	texts := make([]string, len(values))
	for i, v := range values {
		text, ok := v.(string)
		if !ok {
			return answer{}, errAnswer
		}
		texts[i] = text
	}
	if len(texts) == 1 {
		return answer{word: texts[0]}, nil
	}
	if len(texts) != len(fields)+3 {
		return answer{}, errAnswer
	}
	last := len(texts) - 1
	r, err := parseRecord(texts[2:last:last], texts[1])
	if err != nil {
		return answer{}, err
	}
	p := parser{values: texts[last:]}
	return answer{word: texts[0], record: r, stepped: p.time()}, p.err
}

// parseRecord parses the fields. For a missing record it returns a record with the status
// Absent.
func parseRecord(values []string, readAt string) (idempotency.Record, error) {
	p := parser{values: values}
	r := idempotency.Record{
		Key:        idempotency.Key{Scope: p.text(), Operation: p.text(), Value: p.text()},
		Generation: p.int(),
	}
	r.Fingerprint.Spec = p.text()
	p.bytes(r.Fingerprint.Sum[:])
	p.bytes(r.ExactHash[:])
	r.Group, r.Body = p.text(), p.content()
	r.Result = idempotency.Result{Response: p.content(), MessageID: p.text(), SequenceNumber: p.text()}
	r.Status = p.status()
	p.bytes(r.Token[:])
	r.Fence, r.Attempts = p.int(), p.int()
	r.LeaseUntil, r.DoubtSince, r.ResendUntil = p.time(), p.time(), p.time()
	r.Reason = p.text()
	r.Created, r.Expires = p.time(), p.time()
	r.Dataset = idempotency.Dataset{ID: p.text(), Version: p.text(), SourceURI: p.text(), ArtifactChecksum: p.text(), CARELabel: p.text(), ReplaySafe: p.text() == "1"}
	r.Prior = idempotency.PriorState{Status: p.status(), Created: p.time(), Expires: p.time()}
	p.values = append(p.values, readAt)
	r.ReadAt = p.time()
	if p.err != nil {
		return idempotency.Record{}, p.err
	}
	if r.Fence > 0 { // the record exists
		r.Fence = r.Fence<<bucketBits | bucketOf(r.Key.ID())
	}
	return r, nil
}

// parser consumes values one by one and keeps the first error.
type parser struct {
	values []string
	err    error
}

func (p *parser) text() string {
	v := p.values[0]
	p.values = p.values[1:]
	return v
}

func (p *parser) content() []byte {
	if v := p.text(); v != "" {
		return []byte(v)
	}
	return nil
}

func (p *parser) bytes(into []byte) {
	if v := p.text(); len(v) == len(into) {
		copy(into, v)
	} else if v != "" {
		p.fail("%d bytes, want %d", len(v), len(into))
	}
}

func (p *parser) int() int64 {
	v := p.text()
	if v == "" {
		return 0
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		p.fail("%q is not a number", v)
	}
	return n
}

func (p *parser) time() time.Time {
	if p.values[0] == "" {
		p.text()
		return time.Time{}
	}
	return time.UnixMicro(p.int()).UTC()
}

func (p *parser) status() (s idempotency.Status) {
	v := p.text()
	if s.UnmarshalText([]byte(v)) != nil {
		p.fail("status %q", v)
	}
	return s
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("redisstore: a record that this store has not written: "+format, args...)
	}
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// nonZero returns b as text, or "" if all bytes are zero.
func nonZero(b []byte) string {
	for _, c := range b {
		if c != 0 {
			return string(b)
		}
	}
	return ""
}
