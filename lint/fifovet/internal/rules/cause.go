package rules

import (
	"go/token"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// causeOf returns the cause of a faulty value with the origin o. Several findings with an
// equal cause are reported as one. The cause is usually the value at the origin, such as
// one call of time.Now. If the value comes from a function in another package of this
// program, the function is the cause, so all its calls have one cause.
func (p *audit) causeOf(o flow.Origin) any {
	if call, ok := o.Root.(*ssa.Call); ok && o.Frame == nil {
		if callee := flow.CalleeOf(call.Common()); callee != nil && callee.Pkg() != nil && strings.Contains(o.Text, flow.SourceSeparator) &&
			flow.SameProgram(callee.Pkg().Path(), p.Pass.Pkg.Path()) {
			return callee
		}
	}
	return o.Root
}

// valueCause is the cause of findings about the value at one position.
type valueCause struct{ pos token.Pos }

// identityCause is the cause of findings about a message whose body does not identify the
// event. The value in its only field is the same for all findings about one message.
type identityCause struct{ of any }
