package flow

import (
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// originKind is the kind of an origin. A trace follows a value backwards through the
// program. An origin is a place where the trace ends, so the value comes from this place.
type originKind uint8

const (
	FromConst   originKind = iota // the value is a constant or a zero value
	FromSource                    // it comes from a clock, a random source or a generator of identifiers
	FromOrder                     // it depends on the random order in which a range visits a map
	FromPath                      // it comes from a parameter, variable or field, or from an unknown call
	FromBucket                    // a rounded time, such as a date, which stays the same for a while
	FromUnknown                   // the analysis cannot follow the value any further
)

// Origin is one place that a traced value comes from.
type Origin struct {
	Kind  originKind
	Root  ssa.Value
	Path  AccessPath // fields of Root, for FromPath
	Text  string     // text of the constant, or name of the clock or random source
	Pos   token.Pos
	Under AccessPath // the part of the traced value that comes from this origin; empty for the whole value
	Mixed bool       // the traced value is not the origin itself, but computed from it
	Wraps bool       // only the second, minute or hour of a time is used, so the same value comes again later
	Clock bool

	Choice bool // a random number that only selects one of a fixed set of values
	Seeded bool // the value differs between processes, but not within one process
	Top    bool // the trace reached the origin without entering a call
	Frame  *Frame

	Encoded types.Type // type of the value that contains this origin in JSON form; nil without encoding
	Part    AccessPath // part of the encoded value with this origin
}

// At returns the instruction of this origin in the function of the traced value. For an
// origin inside a called function, this is the outermost call. It returns nil for an
// origin that is not an instruction.
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

// outermost returns the first call that the trace entered, in the function with the
// traced value.
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

// Place is the state of a trace at one value. Frame is the innermost call that the trace
// has entered, or nil.
//
// Path is the part of the value that the trace follows. Under is the matching part of the
// value at which the trace began. For example, the program sets order.Buyer to user.Name: a
// trace of order visits user with the Path Name and the Under Buyer.
type Place struct {
	Frame *Frame
	Path  AccessPath
	Under AccessPath
	Mixed bool

	// settled means that the random order of a map no longer matters, because the values
	// were sorted or put into a map.
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
