package dynamostore

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// item is a record in the form of a DynamoDB item. Attributes without a value are absent.
type item map[string]types.AttributeValue

// keepFor is the minimum time for which an expired or released record stays in the table.
// If a claimant repeats a call of Finish in this time, Finish still finds the record and
// can answer as before.
const keepFor = time.Hour

// itemOf returns the record r as an item with the given version in the attribute
// version_token. Each write needs a new version.
func itemOf(r idempotency.Record, version idempotency.Token) item {
	it := item{"key_id": &types.AttributeValueMemberS{Value: r.Key.ID().String()}}
	it.bytes("version_token", version[:])
	it.bytes("scope", []byte(r.Key.Scope))
	it.text("operation_type", r.Key.Operation)
	it.bytes("key", []byte(r.Key.Value))
	it.number("generation", r.Generation)
	it.text("fingerprint_spec", r.Fingerprint.Spec)
	it.bytes("request_hash", r.Fingerprint.Sum[:])
	if r.ExactHash != (idempotency.ExactHash{}) {
		it.bytes("body_hash", r.ExactHash[:])
	}
	it.bytes("message_group", []byte(r.Group))
	it.bytes("body", r.Body)
	it.result(r.Result)
	it.text("status", statusText(r.Status))
	if r.Token != (idempotency.Token{}) {
		it.bytes("token", r.Token[:])
	}
	it.number("fence", r.Fence)
	it.number("attempts", r.Attempts)
	it.time("lease_until", r.LeaseUntil)
	it.time("doubt_since", r.DoubtSince)
	it.time("resend_until", r.ResendUntil)
	it.text("failure", r.Reason)
	it.time("created_at", r.Created)
	it.time("expires_at", r.Expires)
	it.text("dataset_id", r.Dataset.ID)
	it.text("version", r.Dataset.Version)
	it.text("source_uri", r.Dataset.SourceURI)
	it.text("artifact_checksum", r.Dataset.ArtifactChecksum)
	it.text("care_label", r.Dataset.CARELabel)
	if r.Dataset.ReplaySafe {
		it.number("replay_safe", 1)
	}
	if r.Prior.Status != idempotency.StatusAbsent {
		it.text("prior_status", r.Prior.Status.String())
	}
	it.time("prior_created_at", r.Prior.Created)
	it.time("prior_expires_at", r.Prior.Expires)
	it.removal(r)
	return it
}

func (it item) text(name, v string) {
	if v != "" {
		it[name] = &types.AttributeValueMemberS{Value: v}
	}
}

func (it item) bytes(name string, v []byte) {
	if len(v) > 0 {
		it[name] = &types.AttributeValueMemberB{Value: bytes.Clone(v)}
	}
}

func (it item) number(name string, v int64) {
	it[name] = numberOf(v)
}

func numberOf(v int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(v, 10)}
}

func (it item) time(name string, t time.Time) {
	if !t.IsZero() {
		it.number(name, t.UnixMicro())
	}
}

func (it item) result(r idempotency.Result) {
	it.bytes("response", r.Response)
	it.text("message_id", r.MessageID)
	it.text("sequence_number", r.SequenceNumber)
}

// removal sets the attribute remove_at, the time after which DynamoDB may delete the
// item. An item that must stay gets no such attribute.
func (it item) removal(r idempotency.Record) {
	from := r.ReadAt
	switch {
	case r.Status == idempotency.StatusRunning || r.Status != idempotency.StatusAbsent && r.Expires.IsZero():
		return
	case r.Status != idempotency.StatusAbsent && r.Expires.After(from):
		from = r.Expires
	}
	it.number("remove_at", from.Add(keepFor).Unix()+1)
}

func statusText(s idempotency.Status) string {
	if s == idempotency.StatusAbsent {
		return "released"
	}
	return s.String()
}

// parse parses an item. An empty item is the zero record.
func (it item) parse() (r idempotency.Record, version idempotency.Token, err error) {
	if len(it) == 0 {
		return r, version, nil
	}
	p := parser{item: it}
	p.into("version_token", version[:])
	r.Key = idempotency.Key{Scope: string(p.bytes("scope")), Operation: p.text("operation_type"), Value: string(p.bytes("key"))}
	r.Generation, r.Fingerprint.Spec = p.number("generation"), p.text("fingerprint_spec")
	p.into("request_hash", r.Fingerprint.Sum[:])
	p.into("body_hash", r.ExactHash[:])
	r.Group, r.Body = string(p.bytes("message_group")), p.bytes("body")
	r.Result = idempotency.Result{Response: p.bytes("response"), MessageID: p.text("message_id"), SequenceNumber: p.text("sequence_number")}
	r.Status = p.status("status")
	p.into("token", r.Token[:])
	r.Fence, r.Attempts = p.number("fence"), p.number("attempts")
	r.LeaseUntil, r.DoubtSince, r.ResendUntil = p.time("lease_until"), p.time("doubt_since"), p.time("resend_until")
	r.Reason = p.text("failure")
	r.Created, r.Expires = p.time("created_at"), p.time("expires_at")
	r.Dataset = idempotency.Dataset{
		ID: p.text("dataset_id"), Version: p.text("version"), SourceURI: p.text("source_uri"),
		ArtifactChecksum: p.text("artifact_checksum"), CARELabel: p.text("care_label"), ReplaySafe: p.number("replay_safe") == 1,
	}
	r.Prior = idempotency.PriorState{Status: p.status("prior_status"), Created: p.time("prior_created_at"), Expires: p.time("prior_expires_at")}
	if p.err == nil && (version == idempotency.Token{} || r.Fence <= 0) {
		p.err = errors.New("no version_token or no fence")
	}
	if p.err != nil {
		return idempotency.Record{}, idempotency.Token{}, fmt.Errorf("dynamostore: an item that this store has not written: %w", p.err)
	}
	return r, version, nil
}

// parser reads attributes and keeps the first error.
type parser struct {
	item item
	err  error
}

func (p *parser) fail(name string) {
	if p.err == nil {
		p.err = fmt.Errorf("attribute %s", name)
	}
}

// attribute returns the attribute of type V, or the zero V if it is absent. Another type is
// an error.
func attribute[V any](p *parser, name string) (v V) {
	switch a := any(p.item[name]).(type) {
	case nil:
	case *V:
		v = *a
	default:
		p.fail(name)
	}
	return v
}

func (p *parser) text(name string) string {
	return attribute[types.AttributeValueMemberS](p, name).Value
}

func (p *parser) bytes(name string) []byte {
	return attribute[types.AttributeValueMemberB](p, name).Value
}

func (p *parser) into(name string, to []byte) {
	if v := p.bytes(name); len(v) == len(to) {
		copy(to, v)
	} else if len(v) > 0 {
		p.fail(name)
	}
}

func (p *parser) number(name string) int64 {
	if p.item[name] == nil {
		return 0
	}
	n, err := strconv.ParseInt(attribute[types.AttributeValueMemberN](p, name).Value, 10, 64)
	if err != nil {
		p.fail(name)
	}
	return n
}

func (p *parser) time(name string) time.Time {
	if p.item[name] == nil {
		return time.Time{}
	}
	return time.UnixMicro(p.number(name)).UTC()
}

func (p *parser) status(name string) (s idempotency.Status) {
	v := p.text(name)
	if s.UnmarshalText([]byte(v)) != nil {
		p.fail(name)
	}
	return s
}

// parseID parses an item's key_id. It reports false if s is not a key ID.
func parseID(s string) (id idempotency.KeyID, ok bool) {
	if len(s) != 2*len(id) {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(s))
	return id, err == nil
}
