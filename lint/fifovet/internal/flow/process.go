package flow

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// processSources return one value for a whole process, and a different value in the
// next process.
var processSources = []string{"os.Getpid", "os.Getppid", "os.Hostname"}

// isCounter reports whether a function increments a counter of package sync/atomic. Such
// a counter starts again in each process, so two events may get the same number.
func isCounter(obj *types.Func) bool {
	return obj.Pkg() != nil && obj.Pkg().Path() == "sync/atomic" && strings.HasPrefix(obj.Name(), "Add")
}

// receiptHandle reports whether a field is the receipt handle of a received message,
// which is new on every receive (F-044).
func receiptHandle(t types.Type, i int) bool {
	return FieldName(t, i) == "ReceiptHandle" && TypeName(t) == "Message" && strings.HasPrefix(PackagePath(t), "github.com/aws/")
}

// mark changes the origins from index n on.
func (t *Tracer) mark(n int, change func(*Origin)) {
	for i := n; i < len(t.Origins); i++ {
		change(&t.Origins[i])
	}
}

// seed marks a clock or random source that the program calls once: for a package-level
// variable that is set only once, or by sync.OnceValue. So the value counts as the same in
// the whole process.
func seed(o *Origin) { o.Seeded = o.Seeded || o.Kind == FromSource }

// addressVerb returns the verb with which a call of package fmt prints a memory address,
// such as "%p". It returns "" if the call is not known to print an address.
func addressVerb(callee *types.Func, c *ssa.CallCommon) string {
	if pathOf(callee) != "fmt" || !callee.Signature().Variadic() {
		return ""
	}
	format, verb := "", "%v"
	if strings.HasSuffix(callee.Name(), "f") && len(c.Args) > 1 {
		text, ok := ConstString(c.Args[len(c.Args)-2])
		if !ok {
			return ""
		}
		format = text
		switch {
		case strings.Contains(format, "%p"):
			return "%p"
		case strings.Contains(format, "%+v"):
			verb = "%+v"
		case strings.Contains(format, "%#v"):
			verb = "%#v"
		case !strings.Contains(format, "%v"):
			return ""
		}
	}
	for _, arg := range elements(c.Args[len(c.Args)-1]) {
		if hasAddress(EncodedType(arg), 0) {
			return verb + " of a pointer"
		}
	}
	return ""
}

// hasAddress reports whether package fmt prints a value of type t with a memory address
// in the text. Pointers are printed as addresses, with one exception: for an argument
// (depth 0) that points to a struct, map, slice or array, fmt prints the target.
func hasAddress(t types.Type, depth int) bool {
	if depth > maxTypeDepth || hasMethod(t, "String", "Error", "Format") {
		return false
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		switch u.Elem().Underlying().(type) {
		case *types.Struct, *types.Map, *types.Slice, *types.Array:
			return depth > 0 || hasAddress(u.Elem(), depth+1)
		}
		return true
	case *types.Struct:
		return Any(u.Fields(), func(f *types.Var) bool { return hasAddress(f.Type(), depth+1) })
	case *types.Slice:
		return hasAddress(u.Elem(), depth+1)
	case *types.Array:
		return hasAddress(u.Elem(), depth+1)
	case *types.Map:
		return hasAddress(u.Elem(), depth+1)
	case *types.Chan, *types.Signature:
		return true
	}
	return false
}

// followMarshal searches for clock readings and random values in the encoding of a type. It
// follows the type's encoding methods, such as MarshalJSON, that belong to this package.
func (t *Tracer) followMarshal(as types.Type, l Place, depth int) {
	if depth > maxTypeDepth {
		return
	}
	as = Element(as)
	t.followFirstMethod(types.NewPointer(as), l, "MarshalJSON", "MarshalText", "GobEncode", "MarshalBinary")
	if s := StructOf(as); s != nil && !isTime(as) {
		for f := range s.Fields() {
			if named, ok := types.Unalias(Element(f.Type())).(*types.Named); ok && named.Obj().Pkg() == t.p.Pass.Pkg {
				t.followMarshal(named, l, depth+1)
			}
		}
	}
}

// followPrinted handles a call of package fmt, which prints its arguments with their
// methods Error and String. It searches in these methods for clock readings and random
// values.
func (t *Tracer) followPrinted(callee *types.Func, c *ssa.CallCommon, l Place) {
	if pathOf(callee) != "fmt" || !callee.Signature().Variadic() {
		return
	}
	for _, arg := range elements(c.Args[len(c.Args)-1]) {
		t.followFirstMethod(EncodedType(arg), l, "Error", "String")
	}
}

// followFirstMethod traces the results of the first method in `names` that the type has,
// if this package declares it. It keeps only FromSource and FromOrder origins.
func (t *Tracer) followFirstMethod(of types.Type, l Place, names ...string) {
	n := len(t.Origins)
	for _, name := range names {
		obj, _, _ := types.LookupFieldOrMethod(of, false, t.p.Pass.Pkg, name)
		method, ok := obj.(*types.Func)
		if !ok {
			continue
		}
		if fn := t.p.prog.FuncValue(method); fn != nil && method.Pkg() == t.p.Pass.Pkg && !l.Frame.within(fn) {
			inner := l.mix()
			inner.Frame = nil
			for _, v := range Results(fn, 0) {
				t.Value(v, inner)
			}
		}
		break
	}
	t.keep(n, FromSource, FromOrder)
	t.mark(n, func(o *Origin) { o.Mixed, o.Joined, o.Under, o.Frame = true, false, l.Under, l.Frame })
}

// holdsMap reports whether a value of type t contains a map.
func holdsMap(t types.Type, depth int) bool {
	if depth > maxTypeDepth {
		return false
	}
	switch u := Element(t).Underlying().(type) {
	case *types.Map:
		return true
	case *types.Struct:
		return Any(u.Fields(), func(f *types.Var) bool { return holdsMap(f.Type(), depth+1) })
	}
	return false
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
