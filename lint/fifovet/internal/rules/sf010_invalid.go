package rules

import (
	"fmt"
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
			p.legalParts(u)
		}
	}
	for _, u := range p.uses {
		if u.Role == message.RoleGroup && u.Evidence != message.NotFIFO {
			p.legalID(u)
			p.legalParts(u)
		}
	}
}

// legalParts reports SF010 if a constant part of an ID has a character that SQS refuses.
func (p *audit) legalParts(u *message.Use) {
	for _, o := range u.Slice.Origins {
		if i := strings.IndexFunc(o.Text, illegal); o.Kind == flow.FromConst && o.Joined && i >= 0 {
			p.r.report(about(u, invalidID, fmt.Sprintf("%s contains %q: SQS takes ASCII letters, digits and punctuation; replace %q", u.Name(), clip(o.Text), []rune(o.Text[i:])[0])))
			return
		}
	}
}

// illegal reports whether SQS refuses a character in an ID (F-017, F-018).
func illegal(c rune) bool { return c <= ' ' || c > '~' }

// maxID is the largest length of an ID, in characters (F-017, F-018).
const maxID = 128

// legalID reports SF010 for a constant ID that SQS refuses.
func (p *audit) legalID(u *message.Use) {
	if len(u.Slice.Origins) != 1 {
		return
	}
	o := u.Slice.Origins[0]
	if o.Kind != flow.FromConst || o.Text == "" || o.Mixed || !u.Alone {
		return
	}
	var rule string
	if n := len([]rune(o.Text)); n > maxID {
		rule = fmt.Sprintf("has %d characters of at most 128", n)
	} else if i := strings.IndexFunc(o.Text, illegal); i >= 0 {
		rule = fmt.Sprintf("has a character at byte %d that SQS refuses", i)
	} else {
		return
	}
	p.r.report(about(u, invalidID, fmt.Sprintf("%s %q %s; use a short ASCII ID or a hex SHA-256", u.Name(), clip(o.Text), rule)))
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
			f.lower(lint.Warning)
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
