package flow

import (
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// originKind is the kind of an origin. A trace follows a value backwards through the
// program; an origin is a place where it ends.
type originKind uint8

const (
	FromConst   originKind = iota // a constant, or a zero value
	FromSource                    // a clock, a random source, a generator of identifiers
	FromOrder                     // the order of a range over a map
	FromPath                      // a parameter, variable, field, or result of an unknown call
	FromBucket                    // a rounded clock reading, equal for some time
	FromUnknown                   // the analysis does not follow the value any further
)

// Origin is one source of a value.
type Origin struct {
	Kind  originKind
	Root  ssa.Value
	Path  AccessPath // fields of Root, for FromPath
	Text  string     // the constant, or the name of the source
	Pos   token.Pos
	Under AccessPath // part of the traced value that the origin affects
	Mixed bool       // the traced value is computed from the origin
	Wraps bool       // the origin is a second, minute or hour of a clock, so it repeats
	Clock bool

	Choice bool // the origin selects one of a fixed set of values
	Seeded bool // the origin has the same value within one process
	Top    bool // the trace reached the origin without entering a call
	Frame  *Frame

	Encoded types.Type // type of the JSON encoder's argument, or nil
	Part    AccessPath // part of the encoder's argument that the origin affects
}

// At returns the instruction that leads to the origin, in the function with the traced
// value. It is the first call that the trace entered, or the origin itself without such a
// call.
func (o Origin) At() ssa.Instruction {
	if o.Frame != nil {
		return o.Frame.outermost()
	}
	instr, _ := o.Root.(ssa.Instruction)
	return instr
}

// Frame binds the parameters of a callee to the arguments of a call.
type Frame struct {
	Site   ssa.CallInstruction
	Callee *ssa.Function
	Parent *Frame
	depth  int
}

type frameKey struct {
	site   ssa.CallInstruction
	parent *Frame
}

// outermost returns the first call that the trace entered. This call is in the function
// with the traced value.
func (f *Frame) outermost() ssa.CallInstruction {
	for f.Parent != nil {
		f = f.Parent
	}
	return f.Site
}

// within reports whether this frame or an outer frame is in the function.
func (f *Frame) within(fn *ssa.Function) bool {
	for ; f != nil; f = f.Parent {
		if f.Callee == fn {
			return true
		}
	}
	return false
}

// Place describes the state of a trace at a value. Path selects the part of this value that
// the trace follows. Under selects the part of the trace's first value in which the
// followed part ends up. Frame is the
// innermost call that the trace has entered.
type Place struct {
	Frame *Frame
	Path  AccessPath
	Under AccessPath
	Mixed bool

	// settled means that the order in which the values were collected no longer matters:
	// they were sorted, or put into a map.
	settled bool
}

func (l Place) mix() Place {
	l.Mixed, l.Path = true, nil
	return l
}

type placeKey struct {
	v     ssa.Value
	frame *Frame
	path  string
	under string
	mixed bool

	settled bool
}
