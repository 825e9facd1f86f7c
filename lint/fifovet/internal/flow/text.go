package flow

import (
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// Part is a piece of a joined text: a constant, or an unknown value.
type Part struct {
	Const string
	Known bool
	Len   int // bytes; 0 for a value of unknown length
}

// Text splits a string of the analyzed program into parts, in order. For example,
// "order-" + id has two parts: a constant, and an unknown value. Text also splits the
// results of fmt.Sprintf, path.Join and strings.Join, and looks into functions of the
// analyzed package.
//
// A hash is a single part of known length.
func (p *Program) Text(v ssa.Value) []Part { return p.text(v, nil, 0) }

func (p *Program) text(v ssa.Value, bound map[*ssa.Parameter]ssa.Value, depth int) []Part {
	if depth > MaxUnwraps {
		return []Part{{}}
	}
	if s, ok := ConstString(v); ok {
		return []Part{{Const: s, Known: true, Len: len(s)}}
	}
	switch v := v.(type) {
	case *ssa.BinOp:
		if v.Op == token.ADD && isString(v.Type()) {
			return append(p.text(v.X, bound, depth+1), p.text(v.Y, bound, depth+1)...)
		}
	case *ssa.Parameter:
		if arg := bound[v]; arg != nil {
			return p.text(arg, nil, depth+1)
		}
	case *ssa.UnOp:
		if cell := p.CellOf(v.X); cell != nil {
			if val := OnlyStore(cell); val != nil {
				return p.text(val, bound, depth+1)
			}
		}
	case *ssa.Alloc:
		if val := OnlyStore(v); val != nil {
			return p.text(val, bound, depth+1)
		}
	case *ssa.Call:
		return p.textOfCall(v, bound, depth)
	}
	if x := Converted(v); x != nil {
		return p.text(x, bound, depth+1)
	}
	return []Part{{Len: lengthOf(v)}}
}

func (p *Program) textOfCall(v *ssa.Call, bound map[*ssa.Parameter]ssa.Value, depth int) []Part {
	callee := CalleeOf(v.Common())
	if callee == nil {
		return []Part{{}}
	}
	args := v.Call.Args
	switch q := Qualified(callee); {
	case q == "fmt.Sprintf":
		format, ok := ConstString(args[0])
		if !ok {
			return []Part{{}}
		}
		return p.formatParts(format, elements(args[1]), bound, depth)
	case q == "path.Join" || q == "net/url.JoinPath":
		var parts []Part
		for i, elem := range elements(args[len(args)-1]) {
			if i > 0 || len(args) > 1 {
				parts = append(parts, Part{Const: "/", Known: true, Len: 1})
			}
			parts = append(parts, p.text(elem, bound, depth+1)...)
		}
		return parts
	case q == "strings.Join":
		var parts []Part
		sep := p.text(args[1], bound, depth+1)
		for i, elem := range elements(args[0]) {
			if i > 0 {
				parts = append(parts, sep...)
			}
			parts = append(parts, p.text(elem, bound, depth+1)...)
		}
		return parts
	case q == "time.Time.String":
		// The text is a date, a space and a time of day. Only the space is known.
		return []Part{{}, {Const: " ", Known: true, Len: 1}, {}}
	case IsPointerHelper(callee) && len(args) == 1:
		return p.text(args[0], bound, depth+1)
	}
	fn := p.Body(v.Common())
	if fn == nil || fn.Signature.Results().Len() != 1 {
		return []Part{{Len: lengthOf(v)}}
	}
	results := Results(fn, 0)
	if len(results) != 1 {
		return []Part{{}}
	}
	inner := map[*ssa.Parameter]ssa.Value{}
	// In nested calls, where `bound` is not nil, a parameter counts as an unknown value.
	if bound == nil {
		for i, arg := range Args(v.Common()) {
			inner[fn.Params[i]] = arg
		}
	}
	return p.text(results[0], inner, depth+1)
}

// formatParts splits the format of a Sprintf at its verbs. It returns the parts of the
// resulting text.
func (p *Program) formatParts(format string, args []ssa.Value, bound map[*ssa.Parameter]ssa.Value, depth int) []Part {
	var parts []Part
	text := func(s string) {
		if s != "" {
			parts = append(parts, Part{Const: s, Known: true, Len: len(s)})
		}
	}
	for n := 0; ; {
		before, rest, found := strings.Cut(format, "%")
		text(before)
		if !found || rest == "" {
			return parts
		}
		if rest[0] == '%' {
			text("%")
			format = rest[1:]
			continue
		}
		end := strings.IndexFunc(rest, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' })
		if end < 0 {
			return append(parts, Part{})
		}
		verb := rest[end]
		format = rest[end+1:]
		switch {
		case n >= len(args):
			parts = append(parts, Part{})
		case end > 0:
			parts = append(parts, Part{})
		case verb == 's' || verb == 'v':
			parts = append(parts, p.text(args[n], bound, depth+1)...)
		case verb == 'x':
			parts = append(parts, Part{Len: 2 * arrayLength(EncodedType(args[n]))})
		default:
			parts = append(parts, Part{})
		}
		n++
	}
}

// elements returns the values of a slice in order, if a single literal or a call with
// variadic arguments made the slice.
func elements(v ssa.Value) []ssa.Value {
	slice, ok := v.(*ssa.Slice)
	if !ok {
		return nil
	}
	found := map[int64]ssa.Value{}
	for _, instr := range Referrers(slice.X) {
		elem, ok := instr.(*ssa.IndexAddr)
		if !ok {
			continue
		}
		i, ok := constInt(elem.Index)
		if !ok {
			return nil
		}
		for _, val := range Stores(elem) {
			found[i] = val
		}
	}
	var all []ssa.Value
	for i := range int64(len(found)) {
		if found[i] == nil {
			return nil
		}
		all = append(all, found[i])
	}
	return all
}

// lengthOf returns the length of a text with a fixed length (a UUID, or a hash in hex),
// or else 0.
func lengthOf(v ssa.Value) int {
	call, ok := v.(*ssa.Call)
	if !ok {
		return 0
	}
	callee := CalleeOf(call.Common())
	if callee == nil || len(call.Call.Args) == 0 {
		return 0
	}
	arg := call.Call.Args[0]
	switch Qualified(callee) {
	case "github.com/google/uuid.UUID.String":
		return 36
	case "encoding/hex.EncodeToString":
		if slice, ok := arg.(*ssa.Slice); ok && slice.Low == nil && slice.High == nil {
			if ptr, ok := slice.X.Type().Underlying().(*types.Pointer); ok {
				return 2 * arrayLength(ptr.Elem())
			}
		}
	}
	return 0
}

func arrayLength(t types.Type) int {
	if a, ok := t.Underlying().(*types.Array); ok && slices.Contains([]int64{16, 20, 28, 32, 48, 64}, a.Len()) {
		return int(a.Len())
	}
	return 0
}
