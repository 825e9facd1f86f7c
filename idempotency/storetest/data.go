package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

func checkOddKeys(p *probe) {
	values := []string{
		"\x00", "a\x00b", "a", "A", "a ", " a", "ab", "á", "a\u0301", "\ufffd", "\xff", "\xff\xfe", "1", "01", "1.0", "NULL", `\x61`, "{}", "{a,b}", `"`, `\`,
		"'; DROP TABLE idempotency_keys; --", "%", "_", "a*", "$1", ":a", "key\r\nOK", "\u202e", "😀", strings.Repeat("x", 2048), strings.Repeat("x", 2047), strings.Repeat("\x00", 2048),
	}
	var keys []idempotency.Key
	for _, v := range values {
		keys = append(keys, idempotency.Key{Scope: "odd", Operation: "op", Value: v})
		if len(v) <= idempotency.MaxScope {
			keys = append(keys, idempotency.Key{Scope: v, Operation: "op", Value: "value"})
		}
	}
	// Different keys whose parts join to the same text.
	for _, parts := range [][3]string{{"a", "b", "cd"}, {"a", "bc", "d"}, {"ab", "c", "d"}, {"a:b", "c", "d"}, {"a", "b:c", "d"}, {"a", "b", "c:d"}, {"a|b", "c", "d"}, {"a", "b|c", "d"}} {
		keys = append(keys, idempotency.Key{Scope: parts[0], Operation: parts[1], Value: parts[2]})
	}
	for i, k := range keys {
		c := with(k, func(c *idempotency.Claim) { c.Body = []byte{byte(i)} })
		out := p.do(c, idempotency.DecisionNew, "claim of an odd key "+strings.ToValidUTF8(k.Value, "?"))
		if out.Record.Key != k {
			p.fail("key %q came back as %q", k, out.Record.Key)
		}
	}
	records, err := p.store.Lookup(p.ctx, keys...)
	p.must(err, "lookup of many keys")
	for i, r := range records {
		if r.Key != keys[i] || !bytes.Equal(r.Body, []byte{byte(i)}) {
			p.fail("record %d of a lookup is of key %q, body %v, want %q", i, r.Key, r.Body, keys[i])
		}
	}
}

func checkBytes(p *probe) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	largest := idempotency.MaxBody
	if p.MaxBytes > 0 {
		largest = p.MaxBytes
	}
	bodies := [][]byte{
		nil, []byte(`{"b":1e3,"a":1E3,"a":1000.0,"b":0.1e4}`), []byte("{ \"z\" : 1 ,\t\"a\": 2 }\n"), []byte(`"\u00e9\/"`), []byte("\xef\xbb\xbf{}"), all,
		[]byte("\x00"), []byte("\\x00"), []byte("{NULL,\"\"}"), []byte("'"), []byte("\xff\xfe"), bytes.Repeat([]byte("0123456789abcdef"), largest/16),
	}
	for _, body := range bodies {
		k := p.key()
		group := string(body)
		if len(group) > idempotency.MaxGroup {
			group = "group"
		}
		out := p.do(with(k, func(c *idempotency.Claim) {
			c.Body, c.Group, c.ExactHash = body, group, idempotency.ExactHashOf(body, group)
		}), idempotency.DecisionNew, "claim")
		p.must(p.store.Finish(p.ctx, out.Ref(), idempotency.Completed(idempotency.Result{Response: body, MessageID: "é\u2028", SequenceNumber: "0018870000000000000001"})), "complete")
		for name, r := range map[string]idempotency.Record{"granted": out.Record, "looked up": p.lookup(k), "duplicate": p.do(claim(k), idempotency.DecisionDuplicate, "claim").Record} {
			if !bytes.Equal(r.Body, body) || r.Group != group || r.ExactHash != idempotency.ExactHashOf(body, group) {
				p.fail("%s: body %.40q and group %.40q came back as %.40q and %.40q", name, body, group, r.Body, r.Group)
			}
			if name != "granted" && (!bytes.Equal(r.Result.Response, body) || r.Result.MessageID != "é\u2028" || r.Result.SequenceNumber != "0018870000000000000001") {
				p.fail("%s: response %.40q came back as %.80q", name, body, r.Result)
			}
		}
	}
}

// checkTexts stores text that resembles syntax in each text field of a record.
func checkTexts(p *probe) {
	for _, text := range []string{"", `"`, `\`, `\"`, "{}", "{a,b}", ",", "NULL", "null", "'", "''; --", "$1", "?1", "%s", "\n\r\t\b\x7f", "é\u2028😀\ufffd", " ", "\\x00", strings.Repeat(`"\`, 500)} {
		k := p.key()
		k.Operation = "op" + strings.Map(func(r rune) rune {
			if r <= ' ' || r > '~' {
				return -1
			}
			return r
		}, text[:min(len(text), 100)])
		want := idempotency.Dataset{ID: text, Version: text, SourceURI: text, ArtifactChecksum: text, CARELabel: text, ReplaySafe: text != ""}
		c := with(k, func(c *idempotency.Claim) {
			c.Dataset, c.Fingerprint.Spec = want, k.Operation[:min(len(k.Operation), idempotency.MaxSpec)]
		})
		out := p.do(c, idempotency.DecisionNew, "claim")
		p.must(p.store.Finish(p.ctx, out.Ref(), idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForClaim, Reason: text})), "fail")
		r := p.lookup(k)
		if out.Record.Dataset != want || r.Dataset != want || r.Reason != text || r.Key != k || r.Fingerprint != c.Fingerprint {
			p.fail("text %.40q came back as %.200q", text, fmt.Sprintf("%+v", r))
		}
		again := p.do(with(k, func(d *idempotency.Claim) { d.Dataset, d.Fingerprint = want, c.Fingerprint }), idempotency.DecisionNew, "claim")
		p.must(p.store.Finish(p.ctx, again.Ref(), idempotency.Completed(idempotency.Result{MessageID: text, SequenceNumber: text})), "complete")
		if r := p.lookup(k); r.Result.MessageID != text || r.Result.SequenceNumber != text {
			p.fail("message ID %.40q came back as %.40q and %.40q", text, r.Result.MessageID, r.Result.SequenceNumber)
		}
	}
}

func checkMemory(p *probe) {
	k := p.key()
	c := claim(k)
	c.Body = []byte("original")
	out := p.do(c, idempotency.DecisionNew, "claim")
	result := idempotency.Result{Response: []byte("response")}
	c.Body[0] = 'X'
	if string(out.Record.Body) != "original" {
		p.fail("the record of a claim has the body %q, after the argument was changed", out.Record.Body)
	}
	if len(out.Record.Body) > 1 {
		out.Record.Body[1] = 'X'
	}
	p.must(p.store.Finish(p.ctx, out.Ref(), idempotency.Completed(result)), "complete")
	result.Response[0] = 'X'
	r := p.lookup(k)
	if len(r.Body) > 0 && len(r.Result.Response) > 0 {
		r.Body[2], r.Result.Response[1] = 'X', 'X'
	}
	if r = p.lookup(k); string(r.Body) != "original" || string(r.Result.Response) != "response" {
		p.fail("after its callers changed their slices, the store has the body %q and the response %q", r.Body, r.Result.Response)
	}
	// The outcomes of one call must not share memory with each other.
	outs, err := p.store.ClaimBatch(p.ctx, []idempotency.Claim{claim(k), claim(k), c, claim(k)})
	p.must(err, "batch")
	for i := range outs {
		if r := outs[i].Record; string(r.Body) != "original" || string(r.Result.Response) != "response" {
			p.fail("outcome %d of a batch has the body %q and the response %q, after the slices of the ones before it were changed", i, r.Body, r.Result.Response)
		} else {
			r.Body[0], r.Result.Response[0] = 'X', 'X'
		}
	}
	running := claim(p.key())
	outs, err = p.store.ClaimBatch(p.ctx, []idempotency.Claim{running, running, with(running.Key, func(*idempotency.Claim) {})})
	p.must(err, "batch")
	for i := range outs {
		if r := outs[i].Record; string(r.Body) != "body" {
			p.fail("outcome %d of a batch has the body %q, after those before it were changed", i, r.Body)
		} else {
			r.Body[0] = 'X'
		}
	}
}

func checkArguments(p *probe) {
	bad := map[string]func(*idempotency.Claim){
		"Key.Scope":        func(c *idempotency.Claim) { c.Key.Scope = "" },
		"Key.Operation":    func(c *idempotency.Claim) { c.Key.Operation = "a b" },
		"Key.Value":        func(c *idempotency.Claim) { c.Key.Value = strings.Repeat("x", idempotency.MaxValue+1) },
		"Claim.Token":      func(c *idempotency.Claim) { c.Token = idempotency.Token{} },
		"Fingerprint.Spec": func(c *idempotency.Claim) { c.Fingerprint.Spec = "" },
		"Fingerprint.Sum":  func(c *idempotency.Claim) { c.Fingerprint.Sum = [32]byte{} },
		"Claim.Group":      func(c *idempotency.Claim) { c.Group = strings.Repeat("x", idempotency.MaxGroup+1) },
		"Claim.Body":       func(c *idempotency.Claim) { c.Body = make([]byte, idempotency.MaxBody+1) },
		"Terms.Lease":      func(c *idempotency.Claim) { c.Terms.Lease = c.Terms.TTL + 1 },
		"Terms.TTL":        func(c *idempotency.Claim) { c.Terms.TTL = 0 },
		"Terms.ResendFor":  func(c *idempotency.Claim) { c.Terms.ResendFor = -1 },
		"Dataset.ID":       func(c *idempotency.Claim) { c.Dataset.ID = "a\x00" },
	}
	for field, change := range bad {
		k, other := p.key(), p.key()
		c := with(k, change)
		_, err := p.store.Claim(p.ctx, c)
		p.invalid("claim", field, err)
		_, err = p.store.ClaimBatch(p.ctx, []idempotency.Claim{claim(other), c})
		p.invalid("batch", "claims[1]."+field, err)
		p.do(claim(other), idempotency.DecisionNew, "claim of a key of a batch that was refused")
	}
	k := p.key()
	out := p.do(claim(k), idempotency.DecisionNew, "claim")
	p.invalid("complete", "Result.Response", p.store.Finish(p.ctx, out.Ref(), idempotency.Completed(idempotency.Result{Response: make([]byte, idempotency.MaxResponse+1)})))
	p.invalid("complete", "Result.MessageID", p.store.Finish(p.ctx, out.Ref(), idempotency.Completed(idempotency.Result{MessageID: "\xff"})))
	p.invalid("fail", "Failure.Proof", p.store.Finish(p.ctx, out.Ref(), idempotency.FailedWith(idempotency.Failure{Proof: 9})))
	p.invalid("fail", "Failure.Reason", p.store.Finish(p.ctx, out.Ref(), idempotency.FailedWith(idempotency.Failure{Reason: "\x00"})))
	p.invalid("release", "Ref.Fence", p.store.Finish(p.ctx, idempotency.Ref{Key: k}, idempotency.Released()))
	for _, lease := range []time.Duration{0, -time.Second, time.Microsecond} {
		p.invalid("extend", "lease", p.store.Extend(p.ctx, out.Ref(), lease))
	}
	_, err := p.store.Lookup(p.ctx, k, idempotency.Key{Scope: "s", Operation: "o"})
	p.invalid("lookup", "Key.Value", err)
	_, err = p.store.ClaimBatch(p.ctx, slices.Repeat([]idempotency.Claim{claim(k)}, idempotency.MaxBatch+1))
	p.invalid("batch", "claims", err)
	if r := p.lookup(k); r.Status != idempotency.StatusRunning {
		p.fail("calls that were refused left the record %v, want it as it was", r.Status)
	}
}

func (p *probe) invalid(doing, field string, err error) {
	var invalid *idempotency.InvalidError
	if !errors.As(err, &invalid) || invalid.Field != field {
		p.fail("%s: got %v, want an InvalidError about %s", doing, err, field)
	}
}

func checkScans(p *probe) {
	var running, succeeded []idempotency.Key
	for i := range 150 { // most stores read 150 records in several pages
		k := p.key()
		switch {
		case i%10 == 0:
			states["released"](p, k)
		case i%3 == 0:
			states["succeeded"](p, k)
			succeeded = append(succeeded, k)
		default:
			states["running"](p, k)
			running = append(running, k)
		}
	}
	other := idempotency.Key{Scope: "other", Operation: "other", Value: "v"}
	created := p.do(claim(other), idempotency.DecisionNew, "claim").Record.Created
	all := slices.Concat(running, succeeded, []idempotency.Key{other})
	for name, tc := range map[string]struct {
		filter idempotency.Filter
		want   []idempotency.Key
	}{
		"all":                  {idempotency.Filter{}, all},
		"by status":            {idempotency.Filter{Statuses: []idempotency.Status{idempotency.StatusSucceeded}}, succeeded},
		"by two statuses":      {idempotency.Filter{Statuses: []idempotency.Status{idempotency.StatusSucceeded, idempotency.StatusRunning}}, all},
		"by scope":             {idempotency.Filter{Scope: "other"}, []idempotency.Key{other}},
		"by operation":         {idempotency.Filter{Operation: "test.run"}, slices.Concat(running, succeeded)},
		"by an absent scope":   {idempotency.Filter{Scope: "oth"}, nil},
		"created later":        {idempotency.Filter{CreatedFrom: created.Add(1)}, nil},
		"created from there":   {idempotency.Filter{CreatedFrom: created, Scope: "other"}, []idempotency.Key{other}},
		"created before there": {idempotency.Filter{CreatedBefore: created, Scope: "other"}, nil},
	} {
		var got []idempotency.KeyID
		for r, err := range p.store.Scan(p.ctx, tc.filter) {
			p.must(err, "scan")
			if want := p.lookup(r.Key); !want.Equal(r) {
				p.fail("scan %s: got %+v, looked up %+v", name, r, want)
			}
			got = append(got, r.Key.ID())
		}
		want := ids(tc.want)
		if !slices.Equal(got, want) {
			p.fail("scan %s: got %d records, want %d in the order of their IDs", name, len(got), len(want))
		}
	}
	n := 0
	for range p.store.Scan(p.ctx, idempotency.Filter{}) {
		if n++; n == 3 {
			break
		}
	}
	ctx, cancel := context.WithCancel(p.ctx)
	cancel()
	for _, err := range p.store.Scan(ctx, idempotency.Filter{}) {
		if !errors.Is(err, context.Canceled) {
			p.fail("a scan whose context has ended: got %v, want context.Canceled", err)
		}
		return
	}
	p.fail("a scan whose context has ended yielded no error")
}

func ids(keys []idempotency.Key) []idempotency.KeyID {
	out := make([]idempotency.KeyID, len(keys))
	for i, k := range keys {
		out[i] = k.ID()
	}
	slices.SortFunc(out, func(a, b idempotency.KeyID) int { return bytes.Compare(a[:], b[:]) })
	return out
}
