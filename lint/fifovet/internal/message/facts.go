package message

import (
	"go/types"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// SinkFact describes a function that puts its arguments into messages.
type SinkFact struct {
	Params []paramSink
}

// paramSink describes a parameter whose argument becomes part of a message. The
// receiver of a method has index 0.
type paramSink struct {
	Index int
	Path  flow.AccessPath // part of the argument
	Role  Role
	Field string // name in the API, or name of the attribute

	// Evidence describes, as far as the function shows, whether the queue is FIFO. If
	// the queue's name is an argument of the function, the analysis also uses the name
	// at each call.
	Evidence evidence

	// Alone means that the field consists of this argument and constants.
	Alone bool

	// ContentBased means, for a body, that only the body distinguishes the message.
	ContentBased bool

	// Unless is 1 + the index of the argument with the deduplication ID, or 0 without
	// such an argument. If a caller passes an ID there, not only the body but also the
	// ID distinguishes the message.
	Unless     int
	UnlessPath flow.AccessPath

	// Many means that the argument is in several messages.
	Many bool

	// NoGroup means, for a URL, that the messages have no group.
	NoGroup bool

	// Encoded means that the argument is encoded as JSON later.
	Encoded bool
}

func (s paramSink) same(o paramSink) bool {
	return s.Index == o.Index && s.Role == o.Role && s.Field == o.Field && slices.Equal(s.Path, o.Path)
}

func (*SinkFact) AFact() {}

func (f *SinkFact) String() string {
	var parts []string
	for _, s := range f.Params {
		parts = append(parts, s.Field)
	}
	return "sink " + strings.Join(parts, " ")
}

// SinksOf returns a function's arguments that reach messages.
func (p *Index) SinksOf(obj *types.Func) []paramSink {
	if obj.Pkg() == p.Pass.Pkg {
		return p.sinks[obj]
	}
	var fact SinkFact
	if obj.Pkg() != nil && p.Pass.ImportObjectFact(obj, &fact) {
		return fact.Params
	}
	return nil
}

// ExportSinks exports a fact for each function whose arguments become parts of
// messages, and reports whether there is such a function.
func (p *Index) ExportSinks() bool {
	var found bool
	for _, fn := range p.Fns {
		obj, ok := fn.Object().(*types.Func)
		if ok && fn.Parent() == nil && obj.Exported() && len(p.sinks[obj]) > 0 {
			p.Pass.ExportObjectFact(obj, &SinkFact{Params: p.sinks[obj]})
			found = true
		}
	}
	p.Implemented(func(method, by *types.Func) {
		if sinks := p.sinks[by]; len(sinks) > 0 {
			p.Pass.ExportObjectFact(method, &SinkFact{Params: sinks})
			found = true
		}
	})
	return found
}
