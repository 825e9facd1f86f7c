package flow

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

// Program is one package in SSA form, with tables of its functions, variables and calls.
type Program struct {
	Pass    *analysis.Pass
	sources Sources
	options Options

	Fns          []*ssa.Function // in source order, each followed by its function literals
	closures     map[*ssa.Function][]*ssa.MakeClosure
	passed       map[any][]passedFunction    // calls to which the program passes each function (see functionKey)
	fieldFuncs   map[*types.Var][]ssa.Value  // functions stored in each field
	globals      map[*ssa.Global][]ssa.Value // values stored in each package-level variable
	addressTaken map[*ssa.Global]bool        // package-level variables that unknown code may set through a pointer
	Calls        []Call                      // calls with a known callee, in source order
	Direct       map[*ssa.Function][]ssa.CallInstruction
	exempted     map[*token.File]bool
	embedded     map[types.Object]string // the file in a variable with a comment go:embed

	memory map[ssa.Value][]write
	only   map[types.Type]types.Type // the only implementation of an interface; nil if there is not exactly one
	prog   *ssa.Program

	HasFacts bool // this package exports at least one fact (see go/analysis)
}

// Options configures Build. Package flow does not know messages or rules; the functions
// in Options answer its questions about them.
type Options struct {
	// Sources lists the functions of the flag -nondet. The analysis treats them like
	// clocks and random sources.
	Sources Sources

	// Keeps reports whether a function is known to leave its arguments unchanged.
	Keeps func(*types.Func) bool

	// Sinks reports whether a function of another package puts its arguments into
	// messages. The earlier analysis of that package has recorded the answer as a fact
	// (see go/analysis).
	Sinks func(*types.Func) bool

	// Fixed reports whether a field holds a pointer that no code uses to change the
	// target. An example is the pointer to the queue's URL in a message.
	Fixed func(*ssa.FieldAddr) bool
}

// Call is a call site with a known callee.
type Call struct {
	Fn     *ssa.Function
	Instr  ssa.CallInstruction
	Callee *types.Func   // nil for a literal
	Body   *ssa.Function // nil for a function of another package
}

// passedFunction is a call with a function as argument. The field arg is the number of the
// argument, from 0.
type passedFunction struct {
	call ssa.CallInstruction
	arg  int
}

// functionKey returns the key of a function in Program.passed: the declaration, or the
// function literal. A method value such as c.send has the method's key.
func functionKey(fn *ssa.Function) any {
	if obj := fn.Object(); obj != nil {
		return obj
	}
	return fn
}

// Build makes the SSA form of the analyzed package only. It uses the types and the facts
// of other packages. The buildssa pass of go/analysis would also make the SSA form of
// packages that need no analysis.
func Build(pass *analysis.Pass, options Options) *Program {
	p := &Program{
		Pass: pass, sources: options.Sources, options: options,
		closures:     map[*ssa.Function][]*ssa.MakeClosure{},
		Direct:       map[*ssa.Function][]ssa.CallInstruction{},
		passed:       map[any][]passedFunction{},
		fieldFuncs:   map[*types.Var][]ssa.Value{},
		globals:      map[*ssa.Global][]ssa.Value{},
		addressTaken: map[*ssa.Global]bool{},
		exempted:     map[*token.File]bool{},
		embedded:     map[types.Object]string{},
		memory:       map[ssa.Value][]write{},
		only:         map[types.Type]types.Type{},
	}
	prog := ssa.NewProgram(pass.Fset, ssa.InstantiateGenerics)
	for _, imported := range pass.Pkg.Imports() {
		prog.CreatePackage(imported, nil, nil, true)
	}
	pkg := prog.CreatePackage(pass.Pkg, pass.Files, pass.TypesInfo, false)
	pkg.Build()
	p.prog = prog

	for _, file := range pass.Files {
		if exemptFile(pass.Fset, file) {
			p.exempted[pass.Fset.File(file.FileStart)] = true
		}
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if obj, ok := pass.TypesInfo.Defs[decl.Name].(*types.Func); ok {
					if fn := prog.FuncValue(obj); fn != nil {
						p.Fns = appendWithLiterals(p.Fns, fn)
					}
				}
			case *ast.GenDecl:
				p.noteEmbedded(decl)
			}
		}
	}
	if fn := pkg.Func("init"); fn != nil {
		p.Fns = appendWithLiterals(p.Fns, fn)
	}
	p.index()
	return p
}

// noteEmbedded records a variable whose text is a file of the package.
func (p *Program) noteEmbedded(decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		spec, ok := spec.(*ast.ValueSpec)
		if !ok {
			return
		}
		for _, doc := range []*ast.CommentGroup{decl.Doc, spec.Doc} {
			if doc == nil {
				continue
			}
			for _, c := range doc.List {
				if file, ok := strings.CutPrefix(c.Text, "//go:embed "); ok {
					p.embedded[p.Pass.TypesInfo.Defs[spec.Names[0]]] = file
				}
			}
		}
	}
}

func appendWithLiterals(fns []*ssa.Function, fn *ssa.Function) []*ssa.Function {
	fns = append(fns, fn)
	for _, anon := range fn.AnonFuncs {
		fns = appendWithLiterals(fns, anon)
	}
	return fns
}

func (p *Program) index() {
	var operands [16]*ssa.Value
	var calls []Call
	fns := slices.Clone(p.Fns)
	instances := map[*ssa.Function]bool{} // of generic functions
	for i := 0; i < len(fns); i++ {
		fn := fns[i]
		own := i < len(p.Fns)
		for instr := range Instructions(fn) {
			switch instr := instr.(type) {
			case *ssa.MakeClosure:
				if f, ok := instr.Fn.(*ssa.Function); ok {
					p.closures[f] = append(p.closures[f], instr)
				}
			case *ssa.Store:
				if addr, ok := instr.Addr.(*ssa.FieldAddr); ok && IsFunc(instr.Val.Type()) {
					f := fieldAt(addr.X.Type(), addr.Field)
					p.fieldFuncs[f] = append(p.fieldFuncs[f], instr.Val)
				}
			case ssa.CallInstruction:
				if own {
					calls = append(calls, Call{Fn: fn, Instr: instr})
				}
				if f := instr.Common().StaticCallee(); f != nil && f.Origin() != nil && len(f.Blocks) > 0 && !instances[f] {
					instances[f] = true
					fns = appendWithLiterals(fns, f)
				}
				for i, arg := range Args(instr.Common()) {
					if f := FunctionOf(arg); f != nil {
						p.passed[functionKey(f)] = append(p.passed[functionKey(f)], passedFunction{instr, i})
					}
				}
			}
			if own {
				p.indexGlobals(instr, operands[:0])
			}
		}
	}
	for _, c := range calls { // after the loop above, because p.Callee uses its results
		c.Callee, c.Body = p.Callee(c.Instr.Common()), p.Body(c.Instr.Common())
		if c.Callee == nil && c.Body != nil {
			c.Callee = declared(c.Body)
		}
		if c.Callee != nil || c.Body != nil {
			p.Calls = append(p.Calls, c)
		}
		if c.Body == nil {
			c.Body = c.Instr.Common().StaticCallee()
		}
		if c.Body != nil {
			p.Direct[c.Body] = append(p.Direct[c.Body], c.Instr)
		}
	}
}

func (p *Program) indexGlobals(instr ssa.Instruction, buf []*ssa.Value) {
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
			if addr, ok := instr.Addr.(*ssa.FieldAddr); ok && p.options.Fixed(addr) {
				// No code uses such a field to change the variable, so do not set
				// addressTaken.
				continue
			}
		case *ssa.UnOp:
			continue
		}
		p.addressTaken[g] = true
	}
}

// CalleeOf returns the declared function or method of a call, or nil for builtins,
// function values and literals. For an instance of a generic function it returns the
// generic function.
func CalleeOf(c *ssa.CallCommon) *types.Func {
	if c.IsInvoke() {
		return c.Method
	}
	if fn := c.StaticCallee(); fn != nil {
		return declared(fn)
	}
	return nil
}

// declared returns the declaration of a function, or nil for a function literal.
func declared(fn *ssa.Function) *types.Func {
	if origin := fn.Origin(); origin != nil {
		fn = origin
	}
	obj, _ := fn.Object().(*types.Func)
	return obj
}

// Qualified returns import/path.Func or import/path.Type.Method.
func Qualified(obj *types.Func) string {
	return strings.TrimPrefix(pathOf(obj)+"."+withType(obj), ".")
}

// pathOf returns the import path of a function's package, or "" for the method of the
// predeclared type error.
func pathOf(obj *types.Func) string {
	if obj.Pkg() == nil {
		return ""
	}
	return obj.Pkg().Path()
}

// Short returns the function's name as in source code: package.Func or
// package.Type.Method, without the path of the package.
func Short(obj *types.Func) string {
	if obj.Pkg() == nil {
		return withType(obj)
	}
	return obj.Pkg().Name() + "." + withType(obj)
}

// withType returns Func or Type.Method.
func withType(obj *types.Func) string {
	if recv := obj.Signature().Recv(); recv != nil {
		return TypeName(recv.Type()) + "." + obj.Name()
	}
	return obj.Name()
}

// PackagePath returns the package path of a named type, or of a pointer's target.
func PackagePath(t types.Type) string {
	if named := namedType(t); named != nil && named.Obj().Pkg() != nil {
		return named.Obj().Pkg().Path()
	}
	return ""
}

// TypeName returns the name of a named type, or of a pointer's target.
func TypeName(t types.Type) string {
	if named := namedType(t); named != nil {
		return named.Obj().Name()
	}
	return ""
}

func namedType(t types.Type) *types.Named {
	if ptr, ok := types.Unalias(t).(*types.Pointer); ok {
		t = ptr.Elem()
	}
	named, _ := types.Unalias(t).(*types.Named)
	return named
}
