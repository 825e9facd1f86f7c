package flow

import (
	"go/types"
	"iter"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

// FunctionFact is what the analysis of other packages needs to know about a function.
type FunctionFact struct {
	// Results has the parts of the results that contain a clock reading or a random value.
	Results []nondetResult

	// Derived is true if the name suggests a generator of new identifiers, but the result
	// depends only on the arguments: the same arguments give the same identifier.
	Derived bool

	// Getter is the part of its receiver that a method returns, or nil.
	Getter AccessPath

	// Names are the constant names of FIFO queues, one of which the function returns.
	Names []string

	// Calls are the parameters that the function calls, such as send in retry.Do(send).
	Calls []calledParam
}

type nondetResult struct {
	Index  int        // number of the result, from 0
	Path   AccessPath // field with the clock reading or random value; empty for the whole result
	Source string     // name of the clock or random source
	Clock  bool
	Mixed  bool
}

type calledParam struct {
	Index int  // number of the parameter, from 0; a method's receiver has the number 0
	Again bool // the function repeats the call until it succeeds
}

func (*FunctionFact) AFact() {}

func (f *FunctionFact) String() string {
	var parts []string
	for _, r := range f.Results {
		parts = append(parts, strings.Join(append([]string{"nondet"}, r.Path...), "."))
	}
	if f.Derived {
		parts = append(parts, "derived")
	}
	if f.Getter != nil {
		parts = append(parts, strings.Join(append([]string{"getter"}, f.Getter...), "."))
	}
	if f.Names != nil {
		parts = append(parts, "names "+strings.Join(f.Names, " "))
	}
	for _, c := range f.Calls {
		parts = append(parts, map[bool]string{true: "retries", false: "once"}[c.Again])
	}
	return strings.Join(parts, " ")
}

// SourceSeparator stands between two function names in [Origin].Text. In "ids.New calling
// uuid.New", ids.New is a function of another package that returns a random value, and
// uuid.New is the random source.
const SourceSeparator = " calling "

// fact returns what the analysis of another package has found out about a function. It is
// empty for a function of this package.
func (p *Program) fact(obj *types.Func) FunctionFact {
	var fact FunctionFact
	if obj != nil && obj.Pkg() != nil && obj.Pkg() != p.Pass.Pkg {
		p.Pass.ImportObjectFact(obj, &fact)
	}
	return fact
}

// Exported yields the exported functions and methods of this package.
func (p *Program) Exported() iter.Seq2[*types.Func, *ssa.Function] {
	return func(yield func(*types.Func, *ssa.Function) bool) {
		for _, fn := range p.Fns {
			if obj, ok := fn.Object().(*types.Func); ok && fn.Parent() == nil && obj.Exported() && !yield(obj, fn) {
				return
			}
		}
	}
}

// Export exports a fact about a function or an interface's method.
func (p *Program) Export(obj *types.Func, fact analysis.Fact) {
	p.Pass.ExportObjectFact(obj, fact)
	p.HasFacts = true
}

// ExportFacts exports a FunctionFact for each exported function about which there is
// something to know, and for the methods of interfaces with one implementation.
func (p *Program) ExportFacts() {
	if p.Pass.Pkg.Name() == "main" {
		return
	}
	export := func(obj *types.Func, fact *FunctionFact) {
		if fact.String() != "" {
			p.Export(obj, fact)
		}
	}
	for obj, fn := range p.Exported() {
		if !p.Exempt(fn) {
			export(obj, &FunctionFact{p.resultsOf(fn), GuessedID(obj) && p.derives(fn), p.getterOf(fn), p.namesOf(fn), p.callsOf(obj, fn)})
		}
	}
	p.Implemented(func(method, impl *types.Func) {
		if fn := p.prog.FuncValue(impl); fn != nil && !p.Exempt(fn) {
			export(method, &FunctionFact{Results: p.resultsOf(fn)})
		}
	})
}

// derives reports whether the first result of a function comes only from its parameters and
// constants.
func (p *Program) derives(fn *ssa.Function) bool {
	given := false
	for _, v := range Results(fn, 0) {
		for _, o := range p.Trace(v, nil, true).Origins {
			_, isParam := o.Root.(*ssa.Parameter)
			given = given || isParam
			if o.Kind != FromConst && !(o.Kind == FromPath && isParam) {
				return false
			}
		}
	}
	return given
}

// callsOf lists the parameters that fn calls again until the call succeeds (Again is true).
// If the name of fn, of its type or of its package suggests repeated calls, as in retry.Do,
// callsOf also lists the parameters that fn calls without a retry (Again is false).
func (p *Program) callsOf(obj *types.Func, fn *ssa.Function) []calledParam {
	var calls []calledParam
	for i := range fn.Params {
		if again, known := p.callsParamAgain(fn, i, 0); known && (again || Retries(obj)) {
			calls = append(calls, calledParam{i, again})
		}
	}
	return calls
}

// namesOf returns the names of FIFO queues that a function returns, or nil if it may return
// another text.
func (p *Program) namesOf(fn *ssa.Function) []string {
	var names []string
	if r := fn.Signature.Results(); r.Len() == 0 || !isString(r.At(0).Type()) {
		return nil
	}
	for _, v := range Results(fn, 0) {
		for _, o := range p.Trace(v, nil, false).Origins {
			if o.Kind != FromConst || o.Mixed || !strings.HasSuffix(o.Text, ".fifo") || len(names) >= maxResults {
				return nil
			}
			names = append(names, o.Text)
		}
	}
	return names
}

// getterOf returns the part of the receiver that a method without parameters returns, or
// nil.
func (p *Program) getterOf(fn *ssa.Function) AccessPath {
	sig := fn.Signature
	if sig.Recv() == nil || sig.Params().Len() > 0 || sig.Results().Len() == 0 || !Carries(sig.Results().At(0).Type()) {
		return nil
	}
	var path AccessPath
	for _, v := range Results(fn, 0) {
		origins := p.Trace(v, nil, false).Origins
		if path != nil || len(origins) != 1 || origins[0].Kind != FromPath || origins[0].Mixed || origins[0].Root != ssa.Value(fn.Params[0]) {
			return nil
		}
		path = origins[0].Path
	}
	return path
}

// resultsOf returns the parts of a function's results that contain a clock reading or a
// random value.
func (p *Program) resultsOf(fn *ssa.Function) []nondetResult {
	var found []nondetResult
	for i := range fn.Signature.Results().Len() {
		result := fn.Signature.Results().At(i).Type()
		paths := functionParts(result)
		if Carries(result) {
			paths = []AccessPath{nil}
		}
		for _, path := range paths {
			for _, v := range Results(fn, i) {
				for _, o := range p.Trace(v, path, false).Origins {
					r := nondetResult{Index: i, Path: path.Then(o.Under...), Source: o.Text, Clock: o.Clock, Mixed: o.Mixed}
					if _, inner, ok := strings.Cut(o.Text, SourceSeparator); ok {
						r.Source = inner
					}
					known := slices.ContainsFunc(found, func(x nondetResult) bool { return x.Index == r.Index && slices.Equal(x.Path, r.Path) })
					if o.Kind == FromSource && len(found) < maxResults && !known {
						found = append(found, r)
					}
				}
			}
		}
	}
	return found
}

// Yields reports whether a value of the type can hold an identifier or a time, or is a
// function that can return or yield one.
func Yields(t types.Type) bool { return Carries(t) || functionParts(t) != nil }

// Carries reports whether a value of the type can hold an identifier or a time.
func Carries(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Info()&(types.IsString|types.IsInteger) != 0
	case *types.Pointer:
		return Carries(u.Elem())
	case *types.Struct, *types.Array, *types.Slice, *types.Map:
		return true
	}
	return false
}
