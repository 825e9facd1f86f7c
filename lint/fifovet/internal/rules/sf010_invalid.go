package rules

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// invalidID checks rule SF010. It reports a group ID or deduplication ID that SQS refuses.
func (p *audit) invalidID() {
	for _, u := range p.dedupIDs() {
		// SQS does not check the dedupe key of package sqsfifo, because it is sent in the body.
		if u.M == nil || !u.M.Shape.Sdk {
			p.bodyAsID(u)
			p.legalID(u)
		}
	}
	for _, u := range p.fifoUses(message.RoleGroup) {
		p.legalID(u)
	}
}

// illegal reports whether SQS refuses a character in an ID (F-017, F-018).
func illegal(c rune) bool { return c <= ' ' || c > '~' }

// maxID is the largest length of an ID, in characters (F-017, F-018).
const maxID = 128

// legalID reports SF010 for a constant ID that SQS refuses, or a constant part of an ID
// with a character that SQS refuses.
func (p *audit) legalID(u *message.Use) {
	f := about(u, invalidID, "")
	for _, o := range u.Slice.Origins {
		n, i := len([]rune(o.Text)), strings.IndexFunc(o.Text, illegal)
		whole := len(u.Slice.Origins) == 1 && !o.Mixed && u.Alone
		switch {
		case o.Kind != flow.FromConst || !whole && !o.Joined:
			continue
		case whole && n > maxID:
			f.say(lint.Error, "%s %q has %d characters of at most 128; use a short ASCII ID or a hex SHA-256", u.Name(), clip(o.Text), n)
		case whole && i >= 0:
			f.say(lint.Error, "%s %q has a character at byte %d that SQS refuses; use a short ASCII ID or a hex SHA-256", u.Name(), clip(o.Text), i)
		case i >= 0:
			f.say(lint.Error, "%s contains %q: SQS takes ASCII letters, digits and punctuation; replace %q", u.Name(), clip(o.Text), []rune(o.Text[i:])[0])
		default:
			continue
		}
		p.r.report(f)
		return
	}
}

// bodyAsID reports SF010 if the deduplication ID is the whole body of the message.
func (p *audit) bodyAsID(u *message.Use) {
	if u.M == nil {
		return
	}
	f := about(u, invalidID, u.Name()+" is the whole body: SQS takes 128 characters without spaces; leave it out or use the hex SHA-256 of the body")
	encoder := p.encoder(u.Value)
	for _, s := range u.M.All(message.RoleBody) {
		switch {
		case encoder != nil && p.encoder(s.Value) == encoder:
		case encoder == nil && p.sameText(u.Slice, s.Value):
			f.severity = lint.Warning
		default:
			continue
		}
		p.r.report(f)
		return
	}
}

// sameText guesses whether the ID is the whole body: both come from the same parameter,
// variable, field or unknown call. This origin must be a slice (bodies are often byte
// slices, IDs are not), or its name must mean a body, such as payload or msgBody.
func (p *audit) sameText(id *flow.Tracer, body ssa.Value) bool {
	t := p.Trace(body, nil, false)
	if len(id.Origins) != 1 || len(t.Origins) != 1 {
		return false
	}
	a, b := id.Origins[0], t.Origins[0]
	if a.Kind != flow.FromPath || a.Mixed || b.Mixed || !a.Same(b) {
		return false
	}
	name := a.Root.Name()
	if len(a.Path) > 0 {
		name = a.Path[len(a.Path)-1]
	}
	_, isBytes := flow.TypeAt(a.Root.Type(), a.Path).(*types.Slice)
	return isBytes || bodyName.MatchString(name)
}

// encoder returns the call of json.Marshal, or another function named Marshal..., whose
// result v is. Without such a call, encoder returns nil.
func (p *audit) encoder(v ssa.Value) ssa.Value {
	t := p.NewTracer()
	t.Notes = true
	t.Value(v, flow.Place{})
	for _, place := range t.Places {
		made := place.V
		if e, ok := made.(*ssa.Extract); ok {
			made = e.Tuple
		}
		if call, ok := made.(*ssa.Call); ok && !place.Mixed && place.Frame == nil {
			if callee := flow.CalleeOf(call.Common()); callee != nil && strings.HasPrefix(callee.Name(), "Marshal") {
				return call
			}
		}
	}
	return nil
}
