package fifovet

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

// program is one package in SSA form, with the indexes that the rules ask for.
type program struct {
	pass *analysis.Pass
	set  *settings

	fns        []*ssa.Function // in source order, each followed by its literals
	closures   map[*ssa.Function][]*ssa.MakeClosure
	fieldFuncs map[*types.Var][]ssa.Value  // functions that are stored in fields
	globals    map[*ssa.Global][]ssa.Value // what is stored in them, by any function
	loose      map[*ssa.Global]bool        // whose address goes elsewhere
	calls      []call                      // calls of declared functions, in source order
	direct     map[*ssa.Function][]ssa.CallInstruction
	exempted   map[*token.File]bool

	byRoot map[ssa.Value]*message
	memory map[ssa.Value][]write
	sinks  map[*types.Func][]paramSink // of this package's functions
	nondet map[*types.Func]*nondetFact // of this package's functions
}

// call is a call site whose callee is known.
type call struct {
	fn     *ssa.Function
	instr  ssa.CallInstruction
	callee *types.Func
}

// build makes the SSA form of the pass's package alone: callees in other
// packages are known by their types and facts. It is what the buildssa pass
// does, but that one does it for every package, and most have nothing to see.
func build(pass *analysis.Pass, set *settings) *program {
	p := &program{
		pass: pass, set: set,
		closures:   map[*ssa.Function][]*ssa.MakeClosure{},
		direct:     map[*ssa.Function][]ssa.CallInstruction{},
		fieldFuncs: map[*types.Var][]ssa.Value{},
		globals:    map[*ssa.Global][]ssa.Value{},
		loose:      map[*ssa.Global]bool{},
		exempted:   map[*token.File]bool{},
		byRoot:     map[ssa.Value]*message{},
		memory:     map[ssa.Value][]write{},
		sinks:      map[*types.Func][]paramSink{},
		nondet:     map[*types.Func]*nondetFact{},
	}
	prog := ssa.NewProgram(pass.Fset, ssa.InstantiateGenerics)
	for _, imported := range pass.Pkg.Imports() {
		prog.CreatePackage(imported, nil, nil, true)
	}
	pkg := prog.CreatePackage(pass.Pkg, pass.Files, pass.TypesInfo, false)
	pkg.Build()

	for _, file := range pass.Files {
		if exemptFile(pass.Fset, file) {
			p.exempted[pass.Fset.File(file.FileStart)] = true
		}
		for _, decl := range file.Decls {
			if decl, ok := decl.(*ast.FuncDecl); ok {
				if obj, ok := pass.TypesInfo.Defs[decl.Name].(*types.Func); ok {
					if fn := prog.FuncValue(obj); fn != nil {
						p.add(fn)
					}
				}
			}
		}
	}
	if fn := pkg.Func("init"); fn != nil {
		p.add(fn)
	}
	p.index()
	return p
}

func (p *program) add(fn *ssa.Function) {
	p.fns = append(p.fns, fn)
	for _, anon := range fn.AnonFuncs {
		p.add(anon)
	}
}

func (p *program) index() {
	var operands [16]*ssa.Value
	for _, fn := range p.fns {
		for _, block := range fn.Blocks {
			for _, instr := range block.Instrs {
				switch instr := instr.(type) {
				case *ssa.MakeClosure:
					if f, ok := instr.Fn.(*ssa.Function); ok {
						p.closures[f] = append(p.closures[f], instr)
					}
				case *ssa.Store:
					if addr, ok := instr.Addr.(*ssa.FieldAddr); ok && isFunc(instr.Val.Type()) {
						if f := fieldVar(addr); f != nil {
							p.fieldFuncs[f] = append(p.fieldFuncs[f], instr.Val)
						}
					}
				case ssa.CallInstruction:
					if callee := calleeOf(instr.Common()); callee != nil && !instr.Common().IsInvoke() {
						p.calls = append(p.calls, call{fn, instr, callee})
					}
					if callee := instr.Common().StaticCallee(); callee != nil {
						p.direct[callee] = append(p.direct[callee], instr)
					}
				}
				p.indexGlobals(instr, operands[:0])
			}
		}
	}
}

func (p *program) indexGlobals(instr ssa.Instruction, buf []*ssa.Value) {
	for _, op := range instr.Operands(buf) {
		g, ok := (*op).(*ssa.Global)
		if !ok {
			continue
		}
		switch instr := instr.(type) {
		case *ssa.Store:
			if instr.Addr == g {
				p.globals[g] = append(p.globals[g], instr.Val)
				continue
			}
			if addr, ok := instr.Addr.(*ssa.FieldAddr); ok && isURL(addr) {
				continue // nobody changes the name of a queue through a message
			}
		case *ssa.UnOp:
			continue
		}
		p.loose[g] = true
	}
}

func isURL(addr *ssa.FieldAddr) bool {
	s := shapeOf(addr.X.Type())
	return s != nil && s.fields[fieldName(addr.X.Type(), addr.Field)] == roleURL
}

// calleeOf returns the declared function or method that a call names, nil for
// builtins, function values and literals. It is the generic one, not an
// instance of it.
func calleeOf(c *ssa.CallCommon) *types.Func {
	if c.IsInvoke() {
		return c.Method
	}
	fn := c.StaticCallee()
	if fn == nil {
		return nil
	}
	if origin := fn.Origin(); origin != nil {
		fn = origin
	}
	obj, _ := fn.Object().(*types.Func)
	return obj
}

// qualified returns import/path.Func or import/path.Type.Method.
func qualified(obj *types.Func) string {
	name := obj.Name()
	if recv := obj.Signature().Recv(); recv != nil {
		name = typeName(recv.Type()) + "." + name
	}
	if obj.Pkg() == nil {
		return name
	}
	return obj.Pkg().Path() + "." + name
}

// short is the name as a reader of the source would write it, with the name of the
// package and not its path.
func short(obj *types.Func) string {
	name := obj.Name()
	if recv := obj.Signature().Recv(); recv != nil {
		name = typeName(recv.Type()) + "." + name
	}
	if obj.Pkg() == nil {
		return name
	}
	return obj.Pkg().Name() + "." + name
}

// packagePath is where a named type, or what a pointer to it points to, is
// declared.
func packagePath(t types.Type) string {
	if ptr, ok := types.Unalias(t).(*types.Pointer); ok {
		t = ptr.Elem()
	}
	if named, ok := types.Unalias(t).(*types.Named); ok && named.Obj().Pkg() != nil {
		return named.Obj().Pkg().Path()
	}
	return ""
}

func typeName(t types.Type) string {
	if ptr, ok := types.Unalias(t).(*types.Pointer); ok {
		t = ptr.Elem()
	}
	if named, ok := types.Unalias(t).(*types.Named); ok {
		return named.Obj().Name()
	}
	return ""
}
