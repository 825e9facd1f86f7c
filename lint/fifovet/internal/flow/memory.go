package flow

import (
	"go/constant"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// writeKind is the way in which a program changes a variable, a buffer, a map, or the
// target of a pointer.
type writeKind uint8

const (
	Stored      writeKind = iota // an assignment replaces the old value
	appendWrite                  // a call such as Write or Encode adds a value
	anyWrite                     // unknown code may have written any value
	randomWrite                  // a call writes random bytes, or a pointer as text, as with fmt's %p
	randomOrder                  // an encoder writes the entries of a map, in random order
)

// write is one write to a variable, or to the target of a pointer.
type write struct {
	Kind writeKind
	Path AccessPath // the written part of the variable; empty for the whole variable
	Val  ssa.Value  // written value; nil for anyWrite, randomWrite and randomOrder

	// source and seeded are set only for the Kind randomWrite.
	source string // name of the random source
	seeded bool   // the random value stays the same within one process

	// json and printer are set only if Kind is appendWrite.
	json    bool                // the value is encoded as JSON
	printer ssa.CallInstruction // the call that writes the value, such as fmt.Fprint

	Instr ssa.Instruction       // the assignment; nil if a call writes the value
	Calls []ssa.CallInstruction // the nested calls that lead to the write, innermost last
}

// Writes returns all writes in this package to the memory at ref (a variable, or the
// target of a pointer, map or slice), unsorted.
func (p *Program) Writes(ref ssa.Value) []write {
	if ws, ok := p.memory[ref]; ok {
		return ws
	}
	w := &writeWalk{p: p, seen: map[walkKey]bool{}}
	w.walk(ref, nil, nil)
	p.memory[ref] = w.found
	return w.found
}

// boundKey returns the key of an assignment m["id"] = x in the form "[id]" (see mapKey).
// The assignment is inside nested calls; the parameter `calls` lists them, innermost last.
// If the key is a parameter of the called function, boundKey uses the caller's argument.
func (p *Program) boundKey(key ssa.Value, calls []ssa.CallInstruction) string {
	for len(calls) > 0 {
		param, ok := key.(*ssa.Parameter)
		if !ok {
			break
		}
		site := calls[len(calls)-1]
		arg := Argument(site, param)
		if p.Body(site.Common()) != param.Parent() || arg == nil {
			break
		}
		key, calls = arg, calls[:len(calls)-1]
	}
	return mapKey(key)
}

type walkKey struct {
	ref  ssa.Value
	path string
	site ssa.CallInstruction // the last call that the search entered, or nil
}

// writeWalk searches for all writes to one variable, or to the target of a pointer,
// including writes through copies of the pointer.
type writeWalk struct {
	p     *Program
	seen  map[walkKey]bool
	found []write
}

func (w *writeWalk) walk(ref ssa.Value, path AccessPath, calls []ssa.CallInstruction) {
	key := walkKey{ref: ref, path: path.key()}
	if len(calls) > 0 {
		key.site = calls[len(calls)-1]
	}
	if w.seen[key] || len(w.seen) > maxWrites {
		return
	}
	w.seen[key] = true
	if len(path) > maxPath {
		w.found = append(w.found, write{Kind: anyWrite, Path: path, Calls: calls})
		return
	}
	for _, instr := range Referrers(ref) {
		add := func(kind writeKind, path AccessPath, val ssa.Value) {
			w.found = append(w.found, write{Kind: kind, Path: path, Val: val, Instr: instr, Calls: calls})
		}
		switch instr := instr.(type) {
		case *ssa.Store:
			if instr.Addr == ref {
				add(Stored, path, instr.Val)
			} else if IsReference(ref.Type()) {
				w.escape(instr.Addr, path, calls)
			}
		case *ssa.MapUpdate:
			if instr.Map == ref {
				add(Stored, path.Then(w.p.boundKey(instr.Key, calls)), instr.Value)
				add(appendWrite, path.Then(keysOfMap), instr.Key)
			}
		case *ssa.Send:
			if instr.Chan == ref {
				add(Stored, path.Then(sent), instr.X)
			}
		case *ssa.Select:
			for _, s := range instr.States {
				if s.Chan == ref && s.Send != nil {
					add(Stored, path.Then(sent), s.Send)
				}
			}
		case *ssa.FieldAddr:
			w.walk(instr, path.Then(FieldName(instr.X.Type(), instr.Field)), calls)
		case *ssa.IndexAddr:
			if instr.X == ref {
				w.walk(instr, path, calls)
			}
		case *ssa.UnOp:
			if IsReference(instr.Type()) {
				w.walk(instr, path, calls)
			}
		case *ssa.Slice, *ssa.Phi, *ssa.ChangeType, *ssa.MakeInterface, *ssa.ChangeInterface, *ssa.TypeAssert:
			if v := instr.(ssa.Value); v != ref && IsReference(v.Type()) {
				w.walk(v, path, calls)
			}
		case *ssa.MakeClosure:
			for _, v := range Captured(instr, ref) {
				w.walk(v, path, calls)
			}
		case ssa.CallInstruction:
			w.call(instr, ref, path, calls)
		}
	}
}

// escape handles an assignment *addr = ptr, where ptr points to the searched variable.
// The program may later load the pointer from addr, and write to the variable through it.
// If escape cannot find these loads, it adds a write of an unknown value.
func (w *writeWalk) escape(addr ssa.Value, path AccessPath, calls []ssa.CallInstruction) {
	switch addr := addr.(type) {
	case *ssa.Alloc, *ssa.FieldAddr:
		// Assume that each load of a field yields ptr, although a called function may have
		// stored another pointer in the field.
		for _, load := range loadsOf(addr) {
			w.walk(load, path, calls)
		}
	case *ssa.IndexAddr:
		// The pointer is one of several variadic arguments, as in fmt.Sscan(text, &id).
		// Only the called function may write through the pointer.
		for _, slice := range Referrers(addr.X) {
			slice, ok := slice.(*ssa.Slice)
			if !ok {
				continue
			}
			for _, instr := range Referrers(slice) {
				c, ok := instr.(ssa.CallInstruction)
				if !ok {
					continue
				}
				if _, ok := c.Common().Value.(*ssa.Builtin); ok {
					continue
				}
				if callee := CalleeOf(c.Common()); callee == nil || !IsPure(callee) && !IsReader(callee) && !isWriter(callee) {
					w.found = append(w.found, write{Kind: anyWrite, Path: path, Calls: calls})
				}
			}
		}
	default:
		w.found = append(w.found, write{Kind: anyWrite, Path: path, Calls: calls})
	}
}

func (w *writeWalk) call(instr ssa.CallInstruction, ref ssa.Value, path AccessPath, calls []ssa.CallInstruction) {
	c := instr.Common()
	add := func(kind writeKind, val ssa.Value) {
		w.found = append(w.found, write{Kind: kind, Path: path, Val: val, Calls: calls})
	}
	if b, ok := c.Value.(*ssa.Builtin); ok {
		if b.Name() == "copy" && c.Args[0] == ref {
			add(Stored, c.Args[1])
		}
		return
	}
	callee := CalleeOf(c)
	receives := c.IsInvoke() && c.Value == ref || !c.IsInvoke() && len(c.Args) > 0 && c.Args[0] == ref
	switch {
	case callee != nil && isRandomFill(callee, c):
		w.found = append(w.found, write{Kind: randomWrite, Path: path, source: Short(callee), Calls: calls})
		return
	case callee != nil && isTemplate(callee) && len(c.Args) > 2 && c.Args[1] == ref:
		add(appendWrite, c.Args[len(c.Args)-1])
		return
	case callee != nil && receives && isWriter(callee):
		if verb := addressVerb(callee, c); verb != "" {
			w.found = append(w.found, write{Kind: randomWrite, Path: path, source: verb, seeded: true, Calls: calls})
		}
		if Qualified(callee) == "encoding/gob.Encoder.Encode" && holdsMap(EncodedType(c.Args[len(c.Args)-1]), 0) {
			w.found = append(w.found, write{Kind: randomOrder, Path: path, Calls: calls})
		}
		for _, arg := range c.Args {
			if arg != ref {
				w.found = append(w.found, write{Kind: appendWrite, Path: path, Val: arg, json: encodesJSON(callee), printer: instr, Calls: calls})
			}
		}
		return
	case callee != nil && Qualified(callee) == "maps.Copy":
		if c.Args[0] == ref {
			w.found = append(w.found, write{Kind: Stored, Path: path, Val: c.Args[1], Calls: calls})
		}
		return
	case callee != nil && isTextEncoder(callee):
		if src := c.Args[len(c.Args)-1]; src != ref {
			add(appendWrite, src)
		}
		return
	case callee != nil && wrapsWriter(callee):
		if v := instr.Value(); v != nil {
			w.walk(v, path, calls)
		}
		return
	case callee != nil && receives && setsReceiver(callee):
		for _, arg := range c.Args[1:] {
			if arg != ref {
				add(appendWrite, arg)
			}
		}
		return
	case callee != nil && ReturnsError(callee.Signature()) && w.p.options.Sinks(callee):
		return // it sends its arguments, and changes none
	case callee != nil && receives && !c.IsInvoke() && isSetter(callee) && w.p.Body(c) == nil:
		for _, arg := range c.Args[1:] {
			add(appendWrite, arg)
		}
		add(anyWrite, nil)
		return
	case callee != nil && IsReference(ref.Type()) && isMutator(callee):
		add(anyWrite, nil)
		return
	case callee != nil && (IsPure(callee) || IsReader(callee) || w.p.options.Keeps(callee)):
		return
	}
	if c.IsInvoke() && receives && w.p.onlyReads(c.Method, ref) {
		return
	}
	if fn := w.p.Body(c); fn != nil && len(calls) < maxWriteCalls {
		for i, arg := range Args(c) {
			if arg == ref && i < len(fn.Params) {
				w.walk(fn.Params[i], path, append(slices.Clone(calls), instr))
			}
		}
		return
	}
	if IsReference(ref.Type()) {
		add(anyWrite, nil)
	}
}

// onlyReads reports whether the method of the value in an interface writes no memory and
// calls no function. The value v is the interface.
func (p *Program) onlyReads(method *types.Func, v ssa.Value) bool {
	mk, ok := v.(*ssa.MakeInterface)
	if !ok {
		return false
	}
	fn := p.prog.LookupMethod(mk.X.Type(), method.Pkg(), method.Name())
	return fn != nil && len(fn.Blocks) > 0 && !writesMemory(fn) && !Any(Instructions(fn), func(instr ssa.Instruction) bool {
		_, calls := instr.(ssa.CallInstruction)
		return calls
	})
}

// isTextEncoder reports whether a function writes its argument src as text to its
// argument dst, like hex.Encode(dst, src).
func isTextEncoder(obj *types.Func) bool {
	return obj.Name() == "Encode" && obj.Signature().Params().Len() == 2 && strings.HasPrefix(pathOf(obj), "encoding/")
}

// ConstString returns the text of a constant, looking through conversions.
func ConstString(v ssa.Value) (string, bool) {
	if c, ok := v.(*ssa.Const); ok && c.Value != nil && c.Value.Kind() == constant.String {
		return constant.StringVal(c.Value), true
	}
	if x := Converted(v); x != nil {
		return ConstString(x)
	}
	return "", false
}

func IsReference(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Pointer, *types.Map, *types.Slice, *types.Interface, *types.Chan:
		return true
	}
	return false
}

func StructOf(t types.Type) *types.Struct {
	if ptr, ok := t.Underlying().(*types.Pointer); ok {
		t = ptr.Elem()
	}
	s, _ := t.Underlying().(*types.Struct)
	return s
}

// fieldAt returns the field with the number i of a struct, or of a pointer's struct. It
// returns nil for a type parameter.
func fieldAt(t types.Type, i int) *types.Var {
	if s := StructOf(t); s != nil {
		return s.Field(i).Origin()
	}
	return nil
}

func FieldName(t types.Type, i int) string {
	if f := fieldAt(t, i); f != nil {
		return f.Name()
	}
	return "?"
}

// isMutator reports whether a function of a pure package (see IsPure) writes to its
// arguments or its receiver, like hex.Encode or the method Set of url.Values.
func isMutator(obj *types.Func) bool {
	if !IsPure(obj) {
		return false
	}
	sig := obj.Signature()
	return mutatorName.MatchString(obj.Name()) && (sig.Recv() != nil || sig.Params().Len() > 1)
}

// isTemplate reports whether a method executes a template, like template.Execute. Such a
// method writes the resulting text to its first argument.
func isTemplate(obj *types.Func) bool {
	path := pathOf(obj)
	return (path == "text/template" || path == "html/template") && strings.HasPrefix(obj.Name(), "Execute")
}

// isSetter reports whether a method of another package stores its arguments in its
// receiver, judged by the method's name.
func isSetter(obj *types.Func) bool {
	return obj.Signature().Recv() != nil && setterName.MatchString(obj.Name())
}
