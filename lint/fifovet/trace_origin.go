package fifovet

import (
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// originKind says what stands at the end of a backward slice.
type originKind uint8

const (
	fromConst   originKind = iota // a constant, or a zero value
	fromSource                    // a clock, a random source, a generator of identifiers
	fromOrder                     // the order in which a map is ranged over
	fromPath                      // a parameter, a variable, a result of an unknown call, or a field of one
	fromBucket                    // a clock reading cut down to a bucket
	fromUnknown                   // something that this analysis does not see
)

// origin is one thing that a value is made from.
type origin struct {
	kind  originKind
	root  ssa.Value
	path  accessPath // fields of root, for fromPath
	text  string     // the constant, or the name of the source
	pos   token.Pos
	under accessPath // which part of the traced value it is
	mixed bool       // the value is made from it and is not it
	wraps bool       // a clock's second, minute or hour: it comes again
	clock bool

	choice bool // one of a fixed set, picked by it
	seeded bool // the same within one process
	top    bool // found in the function that was asked about, not in a callee
	frame  *frame

	encoded types.Type // what an encoder of JSON was given, nil if it is not in one
	part    accessPath // which part of that it is
}

// at is where the value comes about in the function that was asked about.
func (o origin) at() ssa.Instruction {
	if o.frame != nil {
		return o.frame.outermost()
	}
	instr, _ := o.root.(ssa.Instruction)
	return instr
}

// frame binds the parameters of a callee to the arguments of a call.
type frame struct {
	site   ssa.CallInstruction
	callee *ssa.Function
	parent *frame
	depth  int
}

type frameKey struct {
	site   ssa.CallInstruction
	parent *frame
}

// outermost is the call in the function that was asked about.
func (f *frame) outermost() ssa.CallInstruction {
	for f.parent != nil {
		f = f.parent
	}
	return f.site
}

// within reports whether a function is entered on the way to this frame.
func (f *frame) within(fn *ssa.Function) bool {
	for ; f != nil; f = f.parent {
		if f.callee == fn {
			return true
		}
	}
	return false
}

// place is a value within a slice: which part of it is wanted, and how it got
// here.
type place struct {
	frame *frame
	path  accessPath
	under accessPath
	mixed bool

	// settled says that the order of what is collected no longer matters: it
	// was sorted, or put into a map.
	settled bool
}

func (l place) mix() place {
	l.mixed, l.path = true, nil
	return l
}

type placeKey struct {
	v     ssa.Value
	frame *frame
	path  string
	under string
	mixed bool

	settled bool
}
