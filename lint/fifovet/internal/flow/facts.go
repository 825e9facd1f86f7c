package flow

import (
	"go/types"
	"iter"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

// NondetFact describes a function whose results contain a clock reading or a random
// value. It is exported for the analysis of importing packages.
type NondetFact struct {
	Results []nondetResult
}

type nondetResult struct {
	Index  int        // number of the result, from 0
	Path   AccessPath // field with the clock reading or random value; empty for the whole result
	Source string     // name of the clock or random source
	Clock  bool
	Mixed  bool
}

// DerivedFact marks a function whose name suggests a generator of new identifiers, but
// whose result depends only on its arguments. The same arguments then give the same
// identifier.
type DerivedFact struct{}

// CallsFact describes a function that calls its arguments, such as retry.Do(send).
type CallsFact struct {
	Params []calledParam
}

// calledParam describes an argument that is itself a function, such as send in
// retry.Do(send).
type calledParam struct {
	Index int  // number of the parameter, from 0; a method's receiver has the number 0
	Again bool // the function repeats the call until it succeeds
}

// GetterFact describes a method whose first result is a part of its receiver.
type GetterFact struct {
	Path AccessPath
}

func (*GetterFact) AFact() {}

func (f *GetterFact) String() string { return strings.Join(append([]string{"getter"}, f.Path...), ".") }

// NameFact describes a function that returns one of a few constant names of FIFO queues.
type NameFact struct {
	Names []string
}

func (*NameFact) AFact() {}

func (f *NameFact) String() string { return "names " + strings.Join(f.Names, " ") }

func (*DerivedFact) AFact() {}
func (*CallsFact) AFact()   {}

func (f *DerivedFact) String() string { return "derived" }

func (f *CallsFact) String() string {
	for _, p := range f.Params {
		if p.Again {
			return "retries"
		}
	}
	return "once"
}

func (*NondetFact) AFact() {}

func (f *NondetFact) String() string {
	var parts []string
	for _, r := range f.Results {
		parts = append(parts, strings.Join(append([]string{"nondet"}, r.Path...), "."))
	}
	return strings.Join(parts, " ")
}

// SourceSeparator stands between two function names in [Origin].Text. In "ids.New calling
// uuid.New", ids.New is a function of another package that returns a random value, and
// uuid.New is the random source.
const SourceSeparator = " calling "

// nondetOf returns the NondetFact exported for a function of another package. It returns
// nil without such a fact, and for functions of this package.
func (p *Program) nondetOf(obj *types.Func) *NondetFact {
	if obj.Pkg() == p.Pass.Pkg || obj.Pkg() == nil {
		return nil
	}
	var fact NondetFact
	if p.Pass.ImportObjectFact(obj, &fact) {
		return &fact
	}
	return nil
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

// ExportFacts exports facts about functions, for the packages that import this one:
//
//   - NondetFact: the function returns a clock reading or a random value
//   - DerivedFact: the name suggests a new identifier, but the result depends only on the
//     arguments
//   - GetterFact: the method returns a part of its receiver
//   - NameFact: the function returns the name of a FIFO queue
//   - CallsFact: the function calls one of its arguments. Either the function repeats the
//     call until it succeeds, or only a name, such as retry.Do, suggests this (see
//     Retries). The fact says which.
func (p *Program) ExportFacts() {
	if p.Pass.Pkg.Name() != "main" {
		export := func(obj *types.Func, fn *ssa.Function) {
			if fn == nil || p.Exempt(fn) {
				return
			}
			if fact := p.resultsOf(fn); len(fact.Results) > 0 {
				p.Export(obj, fact)
			}
		}
		for obj, fn := range p.Exported() {
			export(obj, fn)
		}
		p.Implemented(func(method, impl *types.Func) { export(method, p.prog.FuncValue(impl)) })
	}
	for obj, fn := range p.Exported() {
		if names := p.namesOf(fn); len(names) > 0 {
			p.Export(obj, &NameFact{names})
		}
		if path := p.getterOf(fn); path != nil {
			p.Export(obj, &GetterFact{path})
		}
		if GuessedID(obj) && p.derives(fn) {
			p.Export(obj, &DerivedFact{})
		}
		if fact := p.callsOf(obj, fn); len(fact.Params) > 0 {
			p.Export(obj, fact)
		}
	}
}

// derives reports whether the first result of a function comes only from its parameters and
// constants.
func (p *Program) derives(fn *ssa.Function) bool {
	given := false
	for v := range Results(fn, 0) {
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
func (p *Program) callsOf(obj *types.Func, fn *ssa.Function) *CallsFact {
	fact := &CallsFact{}
	for i := range fn.Params {
		if again, known := p.callsParamAgain(fn, i, 0); known && (again || Retries(obj)) {
			fact.Params = append(fact.Params, calledParam{i, again})
		}
	}
	return fact
}

// namesOf returns the names of FIFO queues that a function returns, or nil if it may return
// another text.
func (p *Program) namesOf(fn *ssa.Function) []string {
	var names []string
	if r := fn.Signature.Results(); r.Len() == 0 || !isString(r.At(0).Type()) {
		return nil
	}
	for v := range Results(fn, 0) {
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
	for v := range Results(fn, 0) {
		origins := p.Trace(v, nil, false).Origins
		if path != nil || len(origins) != 1 || origins[0].Kind != FromPath || origins[0].Mixed || origins[0].Root != ssa.Value(fn.Params[0]) {
			return nil
		}
		path = origins[0].Path
	}
	return path
}

func (p *Program) resultsOf(fn *ssa.Function) *NondetFact {
	fact := &NondetFact{}
	for i := range fn.Signature.Results().Len() {
		result := fn.Signature.Results().At(i).Type()
		paths := functionParts(result)
		if Carries(result) {
			paths = []AccessPath{nil}
		}
		for _, path := range paths {
			for v := range Results(fn, i) {
				for _, o := range p.Trace(v, path, false).Origins {
					if o.Kind == FromSource {
						fact.add(nondetResult{Index: i, Path: path.Then(o.Under...), Source: o.Text, Clock: o.Clock, Mixed: o.Mixed})
					}
				}
			}
		}
	}
	return fact
}

// add adds a result to the fact, unless the same part of the result is there.
func (f *NondetFact) add(r nondetResult) {
	if _, inner, ok := strings.Cut(r.Source, SourceSeparator); ok {
		r.Source = inner
	}
	if len(f.Results) < maxResults && !slices.ContainsFunc(f.Results, func(x nondetResult) bool { return x.Index == r.Index && slices.Equal(x.Path, r.Path) }) {
		f.Results = append(f.Results, r)
	}
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
