package rules

import (
	"go/token"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// causeOf returns the cause of a faulty value with the origin o. Findings with an equal
// cause are reported as one. All values from one call of a source have one cause. If the
// source is a function of this program, all values from this function have one cause.
func (p *audit) causeOf(o flow.Origin) any {
	if call, ok := o.Root.(*ssa.Call); ok && o.Frame == nil {
		if callee := flow.CalleeOf(call.Common()); callee != nil && callee.Pkg() != nil && strings.Contains(o.Text, flow.SourceSeparator) &&
			flow.SameProgram(callee.Pkg().Path(), p.Pass.Pkg.Path()) {
			return callee
		}
	}
	return o.Root
}

// valueCause is a fault of the value at a position.
type valueCause struct{ pos token.Pos }

// identityCause is the cause of findings about a body without the identity of the event.
type identityCause struct{ of any }
