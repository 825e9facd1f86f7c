package message

import (
	"go/types"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// SinkFact describes a function whose arguments become parts of messages, such as a wrapper
// of SendMessage. The analyzer exports SinkFact for the analysis of other packages.
type SinkFact struct {
	Params []paramSink
}

// paramSink describes one parameter whose argument becomes part of a message. Index
// counts the parameters from 0, including the receiver of a method.
type paramSink struct {
	Index int
	Path  flow.AccessPath // the part that goes into the message; empty for the whole argument
	Role  Role
	Field string // name of the field in the SQS API, or of the attribute

	// Evidence says whether the function sends the message to a FIFO queue: certainly,
	// maybe or not. If a call passes the URL of a queue with a known name, the name decides
	// instead: a FIFO queue's name ends in .fifo.
	Evidence evidence

	// Alone is true if the message's field consists only of this argument and constants.
	Alone bool

	// ContentBased is true if the function may send the message without a deduplication
	// ID. SQS then recognizes duplicates by their bodies. The rules use ContentBased only
	// for arguments that become bodies or attributes.
	ContentBased bool

	// The field Unless identifies the function's parameter for the deduplication ID, or is
	// zero if the function has none. With such a parameter, ContentBased has no effect: the
	// argument in each call decides. If the argument is empty or may be nil, the call sends
	// a message without an ID.
	Unless dedupParam

	// Many is true if the argument becomes part of several messages.
	Many bool

	// NoGroup is true if the argument is the URL of a queue, and the function sends
	// messages without a message group to this queue.
	NoGroup bool

	// Encoded is true if the function encodes the argument as JSON before it becomes part
	// of the message.
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

// SinksOf returns the parameters of the function `obj` that become parts of messages.
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

// ExportSinks exports a [SinkFact] for each function with a parameter that becomes part of
// a message.
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
