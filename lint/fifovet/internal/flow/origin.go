package flow

import (
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// OriginKind is the kind of an origin. A trace follows a value backwards through the
// program. An origin is a place where the trace ends, so the value comes from this place.
type OriginKind uint8

const (
	FromConst   OriginKind = iota // a constant or a zero value
	FromSource                    // a clock, a random source or a generator of identifiers
	FromOrder                     // the random order in which a range visits a map
	FromPath                      // a parameter, variable or field, or an unknown call
	FromBucket                    // a rounded time, such as a date, which stays the same for a while
	FromZone                      // the time zone of the machine, in the text of a time
	FromUnknown                   // the analysis cannot follow the value any further
)

// Origin is one place that a traced value comes from.
type Origin struct {
	Kind OriginKind
	Root ssa.Value  // where the trace ends, such as a parameter or a call
	Path AccessPath // the fields of Root that lead to the value, if Kind is FromPath
	Text string     // text of the constant, or name of the clock or random source
	Pos  token.Pos

	// Under is the part of the traced value that comes from Root, such as {"Buyer", "ID"}
	// for the field Buyer.ID. It is empty if the whole value comes from Root.
	Under AccessPath

	// Mixed is true if the program computes the traced value from this origin, for
	// example as a hash. Otherwise the traced value, or the part Under, is equal to the
	// origin.
	Mixed bool

	// Joined is true if Mixed is true, and the traced value is a text that contains this
	// origin's text, as in "order-" + id.
	Joined bool

	// Wraps is true if the program uses only a part of the time of day, such as the hour.
	// The same hour comes again each day, so the value alone is not unique.
	Wraps bool

	Clock  bool   // the origin is a clock
	Choice bool   // a random number that only selects one of a fixed set of values
	Seeded bool   // the value differs between processes, but not within one process
	Top    bool   // the origin is not inside a called function
	Frame  *Frame // the innermost call that leads to the origin; nil if Top is true

	// Encoded and Part are set only if the program encodes the value as JSON. For
	// user.Name in json.Marshal(user), Encoded is the type of user, and Part is {"Name"}.
	Encoded types.Type
	Part    AccessPath
}

// Same reports whether two origins are equal constants, or the same part of one parameter,
// variable or unknown call.
func (o Origin) Same(other Origin) bool {
	if o.Kind == FromConst {
		return other.Kind == FromConst && o.Text == other.Text
	}
	return o.Kind == FromPath && other.Kind == FromPath && o.Root == other.Root && slices.Equal(o.Path, other.Path)
}

// SameSource reports whether an origin is a clock reading or random value, and other is the
// same one.
func (o Origin) SameSource(other Origin) bool {
	return other.Kind == FromSource && o.Root == other.Root
}

// At returns the instruction that computes the origin. If the origin is inside a called
// function, At returns the call instead, in the function where the trace began. At
// returns nil if the origin is not an instruction, for example a parameter.
func (o Origin) At() ssa.Instruction {
	if site := o.Frame.outermost(); site != nil {
		return site
	}
	instr, _ := o.Root.(ssa.Instruction)
	return instr
}

// Yielded reports whether the origin is what an iterator yields to the body of a range.
func (o Origin) Yielded() bool {
	for f := o.Frame; f != nil && f.Site != nil; f = f.Parent {
		for _, arg := range f.Site.Common().Args {
			if fn := FunctionOf(arg); fn != nil && isRangeBody(fn) {
				return true
			}
		}
	}
	return false
}

// Frame binds the parameters of a callee to the arguments of a call.
type Frame struct {
	frameKey
	depth int

	// outer is the outermost of the nested calls that lead to this frame. This call is in
	// the function where the trace began.
	outer ssa.CallInstruction
}

// frameKey identifies a frame. In the frames of a trace of one method or function value
// that no known call enters, Site is nil.
type frameKey struct {
	Site   ssa.CallInstruction
	Callee *ssa.Function
	Parent *Frame

	// If held is true, the call is through a function value or an interface. Then env is
	// the frame in which the program made the function value, or the value in the
	// interface. The value in the interface is the receiver.
	held     bool
	env      *Frame
	receiver ssa.Value
}

// outermost returns Frame.outer, or nil without a frame.
func (f *Frame) outermost() ssa.CallInstruction {
	if f == nil {
		return nil
	}
	return f.outer
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

// Place is the state of a trace (a backward search) at one visited value.
//
// For example, the program sets o.Buyer = u.Name. The trace begins at the variable o and
// continues to the variable u. At u, Path is {"Name"}, because the trace needs only the
// field Name of u. Under is {"Buyer"}, because the value becomes the field Buyer of o.
type Place struct {
	Frame  *Frame // the innermost call that the trace has entered, or nil
	Path   AccessPath
	Under  AccessPath
	Mixed  bool // see Origin.Mixed and Origin.Joined
	Joined bool

	// site is the call of the function value or the interface, if Path begins with a part
	// of it and the call is known.
	site *callSite

	// ignoreOrder is true if the random order of a map does not matter, for example
	// because the values are sorted, or if the zone of a time does not.
	ignoreOrder bool
}

func (l Place) mix() Place {
	l.Mixed, l.Joined, l.Path, l.site = true, false, nil, nil
	return l
}

// join is like mix, for a text that contains the value.
func (l Place) join() Place {
	joined := !l.Mixed || l.Joined
	l = l.mix()
	l.Joined = joined
	return l
}

type placeKey struct {
	v      ssa.Value
	frame  *Frame
	path   string
	under  string
	mixed  bool
	joined bool
	site   callSite

	ignoreOrder bool
}
