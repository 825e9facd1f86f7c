package flow

import (
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// originKind is the kind of an origin. A backward slice follows a value backwards through
// the program; an origin is a place where it ends.
type originKind uint8

const (
	FromConst   originKind = iota // a constant, or a zero value
	FromSource                    // a clock, a random source, a generator of identifiers
	FromOrder                     // the order of a range over a map
	FromPath                      // a parameter, variable, field, or result of an unknown call
	FromBucket                    // a clock reading rounded to a bucket
	FromUnknown                   // the analysis does not follow the value any further
)

// Origin is one source of a value.
type Origin struct {
	Kind  originKind
	Root  ssa.Value
	Path  AccessPath // fields of Root, for FromPath
	Text  string     // the constant, or the name of the source
	Pos   token.Pos
	Under AccessPath // affected part of the traced value
	Mixed bool       // the traced value is computed from the origin
	Wraps bool       // the origin is a second, minute or hour of a clock, so it repeats
	Clock bool

	Choice bool // the traced value is one of a fixed set; the origin selects it
	Seeded bool // the origin has the same value within one process
	Top    bool // the origin is in the traced function, not in a called one
	Frame  *Frame

	Encoded types.Type // type of the JSON encoder's argument, or nil
	Part    AccessPath // affected part of the encoded value
}

// At returns the instruction of the traced function that leads to the origin: the
// outermost entered call, or the origin itself if the slice entered no call.
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

// outermost returns the first entered call. It is in the traced function.
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

// Place describes a value that a backward slice has reached. Path is the part of this
// value that matters. Under is the part of the traced value that this value affects.
// Frame is the innermost call that the slice has entered.
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
