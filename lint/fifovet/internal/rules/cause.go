package rules

import (
	"go/token"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// causeOf returns the cause of a value with the origin o. All values from one call of a
// source have the same cause. If the source is a function of this program, all values
// from the function have the same cause.
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

// identityCause is a message whose body does not distinguish events.
type identityCause struct{ of any }
