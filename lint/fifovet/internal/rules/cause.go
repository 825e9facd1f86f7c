package rules

import (
	"go/token"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// causeOf returns a comparable value that identifies the cause of a finding: the place to
// fix. The parameter o is the origin of the faulty value, such as a call of time.Now.
// Findings in one function with an equal cause are reported as one.
func (p *audit) causeOf(o flow.Origin) any {
	if call, ok := o.Root.(*ssa.Call); ok && o.Frame == nil {
		if callee := flow.CalleeOf(call.Common()); callee != nil && callee.Pkg() != nil && strings.Contains(o.Text, flow.SourceSeparator) &&
			flow.SameProgram(callee.Pkg().Path(), p.Pass.Pkg.Path()) {
			// A fix in the called function repairs all its calls.
			return callee
		}
	}
	return o.Root
}

// valueCause is the cause of a finding about one value: the value's position in the
// source.
type valueCause struct{ pos token.Pos }

// about returns a finding about one value of a message.
func about(u *message.Use, rule, text string) finding {
	return finding{rule: rule, fn: u.Fn, pos: u.Pos, arg: u.Arg, maybe: u.Evidence == message.MaybeFIFO, cause: valueCause{u.Pos}, text: text}
}

// identityCause is the cause of a finding about a message whose body does not identify
// the event. The field `key` identifies the message. It comes from message.Use.Key or
// message.Letter.Key.
type identityCause struct{ key any }
