package rules

import (
	"go/token"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// causeOf returns the cause of a faulty value with the origin o. Findings with an equal
// cause are reported as one.
func (p *audit) causeOf(o flow.Origin) any {
	if call, ok := o.Root.(*ssa.Call); ok && o.Frame == nil {
		if callee := flow.CalleeOf(call.Common()); callee != nil && callee.Pkg() != nil && strings.Contains(o.Text, flow.SourceSeparator) &&
			flow.SameProgram(callee.Pkg().Path(), p.Pass.Pkg.Path()) {
			// a function of this program: one cause for all its calls
			return callee
		}
	}
	return o.Root
}

// valueCause is the cause of findings about the value at one position.
type valueCause struct{ pos token.Pos }

// identityCause is the cause of findings about a message whose body does not identify the
// event. The field named of identifies the message.
type identityCause struct{ of any }
