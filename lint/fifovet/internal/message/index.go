package message

import (
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// Index has the messages that one Go package makes or sends. It also has the function
// parameters that become parts of messages.
type Index struct {
	*flow.Program

	byRoot map[ssa.Value]*Message
	sinks  map[any][]paramSink // by function (see target)
}

// target returns the key for fn in the map Index.sinks. The key is the *types.Func of a
// declared function, and fn itself for a function literal.
func target(fn *ssa.Function) any {
	if obj, ok := fn.Object().(*types.Func); ok && fn.Parent() == nil {
		return obj
	}
	return fn
}

// sinksAt returns the parameters of the called function that become parts of messages.
func (p *Index) sinksAt(c flow.Call) []paramSink {
	if c.Callee == nil {
		return p.sinks[c.Body]
	}
	return p.SinksOf(c.Callee)
}

// NewIndex returns an empty index of a package.
func NewIndex(pass *analysis.Pass, sources flow.Sources) *Index {
	sinks := func(obj *types.Func) bool { return pass.ImportObjectFact(obj, &SinkFact{}) }
	return &Index{
		Program: flow.Build(pass, flow.Options{Sources: sources, Keeps: IsSend, Sinks: sinks, Fixed: isField}),
		byRoot:  map[ssa.Value]*Message{}, sinks: map[any][]paramSink{},
	}
}
