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
	Path  flow.AccessPath // used part of the argument
	Role  Role
	Field string // field in the SQS API, or name of the attribute

	// Evidence says whether the queue is FIFO, as far as the function shows. If the
	// function gets the queue's name as an argument, the name at each call counts as well.
	Evidence evidence

	// Alone is true if the field consists only of this argument and constants.
	Alone bool

	// ContentBased matters only for a body. It is true if the function sends the message
	// without a deduplication ID, so SQS compares messages by their bodies.
	ContentBased bool

	// Unless is the parameter for the deduplication ID. If a caller passes an ID to this
	// parameter, ContentBased does not hold.
	Unless given

	// Many is true if the argument becomes part of several messages.
	Many bool

	// NoGroup can be true only for a URL. It is true if the messages have no message
	// group.
	NoGroup bool

	// Encoded is true if the function encodes the argument as JSON.
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

// SinksOf returns the parameters of a function whose arguments become parts of messages.
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

// ExportSinks exports a fact for each function whose arguments become parts of messages.
func (p *Index) ExportSinks() {
	for obj := range p.Exported() {
		if sinks := p.sinks[obj]; len(sinks) > 0 {
			p.Export(obj, &SinkFact{Params: sinks})
		}
	}
	p.Implemented(func(method, by *types.Func) {
		if sinks := p.sinks[by]; len(sinks) > 0 {
			p.Export(method, &SinkFact{Params: sinks})
		}
	})
}
