package flow

import (
	"fmt"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// A function is a value with parts, like a struct. An AccessPath may contain these
// elements:
//
//	()0        the first result of a call of the function
//	(1)0       the first argument of the calls of parameter 1 in the function, such as
//	           what an iterator yields
//	.Key()0    the first result of the method Key, of a value whose type is an interface
//	           or a type parameter

func resultPart(i int) string { return fmt.Sprint("()", i) }

func argumentPart(param, i int) string { return fmt.Sprintf("(%d)%d", param, i) }

func methodPart(name string, i int) string { return fmt.Sprint(".", name, "()", i) }

// partOf splits the first element of a path, if the element is a part of a function or an
// interface. The result param is -1 for a result.
func partOf(path AccessPath) (method string, param, i int, ok bool) {
	if len(path) == 0 || !isFunctionPart(path[0]) {
		return "", 0, 0, false
	}
	method, rest, _ := strings.Cut(path[0], "(")
	param = -1
	if inside, number, _ := strings.Cut(rest, ")"); inside != "" {
		fmt.Sscan(inside+" "+number, &param, &i)
	} else {
		fmt.Sscan(number, &i)
	}
	return strings.TrimPrefix(method, "."), param, i, true
}

func isFunctionPart(elem string) bool {
	return strings.Contains(elem, ")") && !strings.HasPrefix(elem, "[")
}

// InFunction reports whether the path leads through a part of a function or an interface.
func (p AccessPath) InFunction() bool { return slices.ContainsFunc(p, isFunctionPart) }

// callSite is a call through a function value or an interface, with the frame of the
// call's function.
type callSite struct {
	call  ssa.CallInstruction
	frame *Frame
}

// followPart continues a trace of the result of a call at the function value or the
// interface v that the program calls. It returns false if it finds nothing.
func (t *Tracer) followPart(v ssa.Value, part string, site ssa.CallInstruction, l Place) bool {
	if len(l.Path) >= maxPath {
		return false
	}
	n := len(t.Origins)
	l.site = &callSite{site, l.Frame}
	l.Path = l.Path.prepend(part)
	t.Value(v, l)
	if slices.ContainsFunc(t.Origins[n:], func(o Origin) bool { return o.found() || o.ofParameter() }) {
		return true
	}
	t.Origins = t.Origins[:n]
	return false
}

// found reports whether an origin is more than an unknown function.
func (o Origin) found() bool {
	return o.Kind != FromUnknown && !slices.ContainsFunc(o.Path, isFunctionPart)
}

// ofParameter reports whether an origin is a part of a function or an interface that is a
// parameter of the function where the trace began.
func (o Origin) ofParameter() bool {
	_, param := o.Root.(*ssa.Parameter)
	return param && o.Top && o.Kind == FromPath && o.Path.InFunction()
}

// followHeld continues a trace of the result of a call of a function value. If the trace
// does not find the function, the name of the variable may tell that it is a clock or a
// generator of identifiers.
func (t *Tracer) followHeld(v *ssa.Call, result int, l Place) {
	n := len(t.Origins)
	found := t.followPart(v.Call.Value, resultPart(result), v, l)
	if name, ok := generator(v.Common()); ok && !slices.ContainsFunc(t.Origins[n:], Origin.found) {
		t.Origins = t.Origins[:n]
		t.end(Origin{Kind: FromSource, Root: v, Text: name, Pos: v.Pos(), Clock: isTime(v.Type())}, l)
	} else if !found {
		t.endAtCall(v, l)
		return
	}
	t.followWrites(v, l, false)
}

// followFunction continues a trace at the part of fn that begins l.Path.
func (t *Tracer) followFunction(fn *ssa.Function, l Place) {
	_, param, i, _ := partOf(l.Path)
	site, env := l.site, l.Frame
	inner := l
	inner.Path, inner.site = l.Path[1:], nil
	if len(fn.Blocks) == 0 {
		t.followExternal(fn, i, l)
		return
	}
	if env.within(fn) || env != nil && env.depth >= MaxCalls {
		return
	}
	if site != nil {
		inner.Frame = t.enter(frameKey{Site: site.call, Callee: fn, Parent: site.frame, env: env, held: true})
	}
	if param < 0 {
		for _, v := range Results(fn, i) {
			t.Value(v, inner)
		}
	} else if param < len(fn.Params) {
		for _, call := range callsOf(fn.Params[param]) {
			if args := call.Common().Args; i < len(args) {
				t.Value(args[i], inner)
			}
		}
	}
}

// followExternal handles the result i of a function value that is a declared function of
// another package.
func (t *Tracer) followExternal(fn *ssa.Function, i int, l Place) {
	obj := declared(fn)
	if _, param, _, _ := partOf(l.Path); obj == nil || param >= 0 {
		return
	}
	site := l.site
	inner := l
	inner.Path, inner.site = l.Path[1:], nil
	if site == nil {
		if t.p.isSource(obj) {
			t.end(Origin{Kind: FromSource, Root: fn, Text: Short(obj), Clock: isClock(obj) || obj.Pkg().Path() == "time"}, inner)
		} else {
			t.endAtFact(t.p.fact(obj), fn, obj, i, inner)
		}
	} else if call, ok := site.call.(*ssa.Call); ok {
		inner.Frame = site.frame
		t.followDeclared(call, obj, nil, i, inner)
	}
}

// callsOf returns the calls of a parameter that is a function, in the parameter's
// function and the literals inside it.
func callsOf(v ssa.Value) []ssa.CallInstruction {
	var calls []ssa.CallInstruction
	for _, instr := range Referrers(v) {
		switch instr := instr.(type) {
		case ssa.CallInstruction:
			if instr.Common().Value == v {
				calls = append(calls, instr)
			}
		case *ssa.Store:
			if cell, ok := instr.Addr.(*ssa.Alloc); ok && instr.Val == v {
				for _, load := range Loads(cell) {
					calls = append(calls, callsOf(load)...)
				}
			}
		case *ssa.ChangeType:
			calls = append(calls, callsOf(instr)...)
		}
	}
	return calls
}

// followCallback continues a trace at the parameter v of a function literal that the
// program passes to a function, for example the body of a range over an iterator: at the
// arguments with which that function calls the literal. It returns false if it finds
// nothing.
func (t *Tracer) followCallback(v *ssa.Parameter, l Place) bool {
	fn := v.Parent()
	if fn.Parent() == nil {
		return false
	}
	found := false
	for _, use := range t.p.passed[functionKey(fn)] {
		outer := l
		for outer.Frame != nil && outer.Frame.Callee != use.call.Parent() {
			outer.Frame = outer.Frame.Parent
		}
		part := argumentPart(use.arg, slices.Index(fn.Params, v))
		found = t.followPart(use.call.Common().Value, part, use.call, outer) || found
	}
	return found
}

// followFields continues a trace at each function that this package stores in an
// unexported field. It returns false if the field is exported, or holds no function.
func (t *Tracer) followFields(x ssa.Value, i int, l Place) bool {
	f := fieldAt(x.Type(), i)
	if f == nil || f.Exported() || f.Pkg() != t.p.Pass.Pkg {
		return false
	}
	held := t.p.fieldFuncs[f]
	for _, val := range held {
		t.Value(val, l)
	}
	return len(held) > 0
}

// followInterface continues a trace of the result of an interface's method at the value
// in the interface. It returns false if it finds nothing. If judged is true, a parameter
// counts as nothing, because more is known of the method.
func (t *Tracer) followInterface(v *ssa.Call, result int, l Place, judged bool) bool {
	c := v.Common()
	n := len(t.Origins)
	if t.p.options.Keeps(c.Method) || isClock(c.Method) || !t.followPart(c.Value, methodPart(c.Method.Name(), result), v, l) {
		return false
	}
	if judged && !slices.ContainsFunc(t.Origins[n:], Origin.found) {
		t.Origins = t.Origins[:n]
		return false
	}
	return true
}

// followMethod handles a path that begins with the result of a method, at a value with a
// concrete type. It returns false for an interface or a type parameter.
func (t *Tracer) followMethod(v ssa.Value, l Place) bool {
	name, _, i, ok := partOf(l.Path)
	of := concrete(v.Type())
	if !ok || name == "" || of == nil {
		return false
	}
	obj, _, _ := types.LookupFieldOrMethod(of, true, t.p.Pass.Pkg, name)
	method, ok := obj.(*types.Func)
	if c, empty := v.(*ssa.Const); !ok || empty && c.IsNil() {
		return ok
	}
	site := l.site
	inner := l
	inner.Path, inner.site = l.Path[1:], nil
	fn := t.p.prog.FuncValue(method)
	switch {
	case fn == nil || len(fn.Blocks) == 0:
		fact, root := t.p.fact(method), v
		if site != nil && site.call.Value() != nil {
			root, inner.Frame = site.call.Value(), site.frame
		}
		if t.endAtFact(fact, root, method, i, inner) {
			break
		}
		if inner.Frame = l.Frame; i == 0 && fact.Getter != nil {
			inner.Path = fact.Getter.Then(inner.Path...)
			t.Value(v, inner)
		}
	case !l.Frame.within(fn) && (l.Frame == nil || l.Frame.depth < MaxCalls):
		key := frameKey{Callee: fn, Parent: l.Frame, env: l.Frame, held: true, receiver: v}
		if site != nil {
			key.Site, key.Parent = site.call, site.frame
		}
		inner.Frame = t.enter(key)
		for _, v := range Results(fn, i) {
			t.Value(v, inner)
		}
	}
	return true
}

// concrete returns the type whose methods a value has, as a pointer. It returns nil for
// interfaces, type parameters, and addresses of variables with such a type.
func concrete(t types.Type) types.Type {
	for range maxTypeDepth {
		ptr, ok := t.Underlying().(*types.Pointer)
		if !ok {
			break
		}
		if namedType(ptr) != nil && !types.IsInterface(ptr.Elem()) {
			return t
		}
		t = ptr.Elem() // the address of a variable
	}
	if types.IsInterface(t) || namedType(t) == nil {
		return nil
	}
	return types.NewPointer(t)
}

// functionParts returns the parts of a function value that may be random: the results of a
// function without parameters, and what an iterator yields. It returns nil for other
// types.
func functionParts(t types.Type) []AccessPath {
	sig, ok := t.Underlying().(*types.Signature)
	if !ok {
		return nil
	}
	var parts []AccessPath
	add := func(vars *types.Tuple, part func(int) string) {
		for i := range vars.Len() {
			if Carries(vars.At(i).Type()) {
				parts = append(parts, AccessPath{part(i)})
			}
		}
	}
	switch sig.Params().Len() {
	case 0:
		add(sig.Results(), resultPart)
	case 1:
		if yield, ok := sig.Params().At(0).Type().Underlying().(*types.Signature); ok && sig.Results().Len() == 0 {
			add(yield.Params(), func(i int) string { return argumentPart(0, i) })
		}
	}
	return parts
}
