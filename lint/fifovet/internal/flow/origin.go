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
	FromConst   originKind = iota // a constant or a zero value
	FromSource                    // a clock, a random source or a generator of identifiers
	FromOrder                     // the random order in which a range visits a map
	FromPath                      // a parameter, variable or field, or an unknown call
	FromBucket                    // a rounded time, such as a date, which stays the same for a while
	FromUnknown                   // the analysis cannot follow the value any further
)

// Origin is one place that a traced value comes from.
type Origin struct {
	Kind originKind
	Root ssa.Value
	Path AccessPath // the fields of Root that lead to the value, if Kind is FromPath
	Text string     // text of the constant, or name of the clock or random source
	Pos  token.Pos

	// Under names the part of the traced value that comes from this origin, such as a
	// field. An empty path means the whole value.
	Under AccessPath

	// Mixed is true if the program computes the traced value from this origin, for
	// example as a hash. Otherwise the traced value, or the part Under, is equal to the
	// origin.
	Mixed bool

	// Wraps is true if the program uses only a part of the time of day, such as the hour.
	// The same hour comes again each day, so the value alone is not unique.
	Wraps bool

	Clock  bool   // the origin is a clock
	Choice bool   // a random number that only selects one of a fixed set of values
	Seeded bool   // the value differs between processes, but not within one process
	Top    bool   // the origin is not inside a called function
	Frame  *Frame // the innermost call that leads to the origin; nil if Top is true

	// If the program encodes the origin as a part of a JSON text, Encoded is the type of
	// the encoded value, and Part names the part of this value. Otherwise Encoded is nil.
	Encoded types.Type
	Part    AccessPath
}

// At returns the instruction that computes the origin. If the origin is inside a called
// function, At returns the call instead, in the function where the trace began. At
// returns nil if the origin is not an instruction, for example a parameter.
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

// outermost returns the outermost of the nested calls that lead to this frame. This call
// is in the function where the trace began.
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

// Place is the state of a trace while it visits one value.
//
// For example, a program sets order.Buyer = user.Name. A trace of order then also visits
// user. In this visit, Path is Name: the trace follows only this field of user. Under is
// Buyer: this field of order comes from user.
type Place struct {
	Frame *Frame     // the innermost call that the trace has entered, or nil
	Path  AccessPath // the followed part of the visited value
	Under AccessPath // the part of the trace's first value that comes from Path
	Mixed bool       // see Origin.Mixed

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
