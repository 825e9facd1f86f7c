package fifovet

import (
	"go/constant"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// writeKind says how a value gets into memory.
type writeKind uint8

const (
	stored writeKind = iota // the memory is the value
	fed                     // the value is mixed with what is there: Write, Encode
	filled                  // a function that is not known here writes
	minted                  // a random source fills it
)

// write is one thing that happens to a piece of memory. Pointers are
// transparent: a pointer and what it points to are one place.
type write struct {
	kind   writeKind
	path   accessPath // fields and map keys, from the place that was asked for
	val    ssa.Value  // nil for filled and minted
	source string     // for minted: by what
	json   bool       // for fed: as JSON
	instr  ssa.Instruction
	calls  []ssa.CallInstruction
}

// writes returns what is written to the memory at ref, anywhere in the
// package and in any order.
func (p *program) writes(ref ssa.Value) []write {
	if ws, ok := p.memory[ref]; ok {
		return ws
	}
	p.memory[ref] = nil // for cycles
	w := &writeWalk{p: p, seen: map[walkKey]bool{}}
	w.walk(ref, nil, nil)
	p.memory[ref] = w.found
	return w.found
}

// boundKey is mapKey within calls: a key that is a parameter is the argument of
// the call.
func boundKey(key ssa.Value, calls []ssa.CallInstruction) string {
	for len(calls) > 0 {
		param, ok := key.(*ssa.Parameter)
		if !ok {
			break
		}
		site := calls[len(calls)-1]
		i := slices.Index(param.Parent().Params, param)
		if site.Common().StaticCallee() != param.Parent() || i < 0 || i >= len(site.Common().Args) {
			break
		}
		key, calls = site.Common().Args[i], calls[:len(calls)-1]
	}
	return mapKey(key)
}

type walkKey struct {
	ref  ssa.Value
	path string
	site ssa.CallInstruction // the innermost call on the way
}

type writeWalk struct {
	p     *program
	seen  map[walkKey]bool
	found []write
}

func (w *writeWalk) walk(ref ssa.Value, path accessPath, calls []ssa.CallInstruction) {
	key := walkKey{ref: ref, path: path.key()}
	if len(calls) > 0 {
		key.site = calls[len(calls)-1]
	}
	if w.seen[key] || len(w.seen) > maxWrites {
		return
	}
	w.seen[key] = true
	if len(path) > maxPath {
		w.found = append(w.found, write{kind: filled, path: path, calls: calls})
		return
	}
	for _, instr := range referrers(ref) {
		add := func(kind writeKind, path accessPath, val ssa.Value) {
			w.found = append(w.found, write{kind: kind, path: path, val: val, instr: instr, calls: calls})
		}
		switch instr := instr.(type) {
		case *ssa.Store:
			if instr.Addr == ref {
				add(stored, path, instr.Val)
			} else if isReference(ref.Type()) {
				w.escape(instr.Addr, path, calls)
			}
		case *ssa.MapUpdate:
			if instr.Map == ref {
				add(stored, path.then(boundKey(instr.Key, calls)), instr.Value)
				add(fed, path.then(keysOfMap), instr.Key)
			}
		case *ssa.FieldAddr:
			w.walk(instr, path.then(fieldName(instr.X.Type(), instr.Field)), calls)
		case *ssa.IndexAddr:
			if instr.X == ref {
				w.walk(instr, path, calls)
			}
		case *ssa.UnOp:
			if isReference(instr.Type()) {
				w.walk(instr, path, calls)
			}
		case *ssa.Slice, *ssa.Phi, *ssa.ChangeType, *ssa.MakeInterface, *ssa.ChangeInterface, *ssa.TypeAssert:
			if v := instr.(ssa.Value); v != ref && isReference(v.Type()) {
				w.walk(v, path, calls)
			}
		case *ssa.MakeClosure:
			if fn, ok := instr.Fn.(*ssa.Function); ok {
				for i, b := range instr.Bindings {
					if b == ref {
						w.walk(fn.FreeVars[i], path, calls)
					}
				}
			}
		case ssa.CallInstruction:
			w.call(instr, ref, path, calls)
		}
	}
}

// escape follows a reference that is itself stored. In a local variable it can
// be followed; elsewhere anything may happen to it.
func (w *writeWalk) escape(addr ssa.Value, path accessPath, calls []ssa.CallInstruction) {
	switch addr := addr.(type) {
	case *ssa.Alloc:
		w.cell(addr, path, calls)
	case *ssa.FieldAddr:
		// What is loaded from that field of that variable is the same object.
		// A callee that changes it through the structure is beyond this
		// analysis.
		for _, instr := range referrers(addr.X) {
			if same, ok := instr.(*ssa.FieldAddr); ok && same.Field == addr.Field {
				w.cell(same, path, calls)
			}
		}
	case *ssa.IndexAddr:
		// One of several arguments, as in fmt.Sscan(text, &id).
		for _, slice := range referrers(addr.X) {
			slice, ok := slice.(*ssa.Slice)
			if !ok {
				continue
			}
			for _, instr := range referrers(slice) {
				c, ok := instr.(ssa.CallInstruction)
				if !ok {
					continue
				}
				if _, ok := c.Common().Value.(*ssa.Builtin); ok {
					continue
				}
				if callee := calleeOf(c.Common()); callee == nil || !isPure(callee) && !isReader(callee) && !isWriter(callee) {
					w.found = append(w.found, write{kind: filled, path: path, calls: calls})
				}
			}
		}
	default:
		w.found = append(w.found, write{kind: filled, path: path, calls: calls})
	}
}

// cell walks every value that is loaded from a variable which holds the
// reference.
func (w *writeWalk) cell(addr ssa.Value, path accessPath, calls []ssa.CallInstruction) {
	for _, instr := range referrers(addr) {
		switch instr := instr.(type) {
		case *ssa.UnOp:
			w.walk(instr, path, calls)
		case *ssa.MakeClosure:
			if fn, ok := instr.Fn.(*ssa.Function); ok {
				for i, b := range instr.Bindings {
					if b == addr {
						w.cell(fn.FreeVars[i], path, calls)
					}
				}
			}
		}
	}
}

func (w *writeWalk) call(instr ssa.CallInstruction, ref ssa.Value, path accessPath, calls []ssa.CallInstruction) {
	c := instr.Common()
	add := func(kind writeKind, val ssa.Value) {
		w.found = append(w.found, write{kind: kind, path: path, val: val, calls: calls})
	}
	if b, ok := c.Value.(*ssa.Builtin); ok {
		if b.Name() == "copy" && c.Args[0] == ref {
			add(stored, c.Args[1])
		}
		return
	}
	callee := calleeOf(c)
	receives := c.IsInvoke() && c.Value == ref || !c.IsInvoke() && len(c.Args) > 0 && c.Args[0] == ref
	switch {
	case callee != nil && isRandomFill(callee, c):
		w.found = append(w.found, write{kind: minted, path: path, source: short(callee), calls: calls})
		return
	case callee != nil && receives && isWriter(callee):
		for _, arg := range c.Args {
			if arg != ref {
				w.found = append(w.found, write{kind: fed, path: path, val: arg, json: encodesJSON(callee), calls: calls})
			}
		}
		return
	case callee != nil && qualified(callee) == "maps.Copy":
		if c.Args[0] == ref {
			w.found = append(w.found, write{kind: stored, path: path, val: c.Args[1], calls: calls})
		}
		return
	case callee != nil && isTextEncoder(callee):
		if src := c.Args[len(c.Args)-1]; src != ref {
			add(fed, src)
		}
		return
	case callee != nil && wrapsWriter(callee):
		if v := instr.Value(); v != nil {
			w.walk(v, path, calls)
		}
		return
	case callee != nil && receives && computes(callee):
		for _, arg := range c.Args[1:] {
			if arg != ref {
				add(fed, arg)
			}
		}
		return
	case callee != nil && isReference(ref.Type()) && mutates(callee):
		add(filled, nil)
		return
	case callee != nil && (isPure(callee) || isReader(callee) || isSend(callee)):
		return
	}
	if fn := staticBody(c); fn != nil && len(calls) < maxWriteCalls {
		for i, arg := range c.Args {
			if arg == ref && i < len(fn.Params) {
				w.walk(fn.Params[i], path, append(slices.Clone(calls), instr))
			}
		}
		return
	}
	if isReference(ref.Type()) {
		add(filled, nil)
	}
}

// isTextEncoder reports whether a function writes its last argument into the one
// before as text, such as hex.Encode.
func isTextEncoder(obj *types.Func) bool {
	return obj.Name() == "Encode" && obj.Pkg() != nil && obj.Signature().Params().Len() == 2 && strings.HasPrefix(obj.Pkg().Path(), "encoding/")
}

// staticBody returns the callee if its body is at hand: a function of this
// package or a literal.
func staticBody(c *ssa.CallCommon) *ssa.Function {
	if fn := c.StaticCallee(); fn != nil && len(fn.Blocks) > 0 {
		return fn
	}
	return nil
}

// constString returns the text of a constant, also through a conversion.
func constString(v ssa.Value) (string, bool) {
	switch v := v.(type) {
	case *ssa.Const:
		if v.Value != nil && v.Value.Kind() == constant.String {
			return constant.StringVal(v.Value), true
		}
	case *ssa.ChangeType:
		return constString(v.X)
	case *ssa.Convert:
		return constString(v.X)
	case *ssa.MakeInterface:
		return constString(v.X)
	}
	return "", false
}

func isReference(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Pointer, *types.Map, *types.Slice, *types.Interface, *types.Chan:
		return true
	}
	return false
}

// referrers are the instructions that use a value. Constants, functions and
// package-level variables do not know theirs.
func referrers(v ssa.Value) []ssa.Instruction {
	if refs := v.Referrers(); refs != nil {
		return *refs
	}
	return nil
}

func structOf(t types.Type) *types.Struct {
	if ptr, ok := t.Underlying().(*types.Pointer); ok {
		t = ptr.Elem()
	}
	s, _ := t.Underlying().(*types.Struct)
	return s
}

func fieldName(t types.Type, i int) string {
	if s := structOf(t); s != nil && i < s.NumFields() {
		return s.Field(i).Name()
	}
	return "?"
}

// mutates reports whether a function of a package that is otherwise pure writes
// to what it is given, such as hex.Encode and the Set of url.Values.
func mutates(obj *types.Func) bool {
	if !isPure(obj) {
		return false
	}
	name, sig := obj.Name(), obj.Signature()
	for _, verb := range []string{"Put", "Encode", "Execute", "Set", "Add", "Merge", "Insert", "Copy", "NewEncoder", "Marshal"} {
		if strings.HasPrefix(name, verb) && (sig.Recv() != nil || sig.Params().Len() > 1) {
			return true
		}
	}
	return false
}
