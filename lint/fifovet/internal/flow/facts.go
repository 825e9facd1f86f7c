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
	Index  int
	Path   AccessPath // part of the result with the number Index that comes from Source; empty for the whole result
	Source string
	Clock  bool
	Mixed  bool
}

// DerivedFact marks a function whose name suggests a generator of new identifiers, but
// whose result depends only on its arguments. The same arguments then give the same
// identifier.
type DerivedFact struct{}

// CallsFact describes a function that calls functions passed to it as arguments.
type CallsFact struct {
	Params []calledParam
}

// calledParam is a parameter of function type that the function calls. Again means that
// the function calls it again after a failed call.
type calledParam struct {
	Index int
	Again bool
}

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

// SourceSeparator joins two names in [Origin].Text: a function of another package, and the
// clock or random source that this function calls, as in "ids.New calling uuid.New".
const SourceSeparator = " calling "

// nondetOf returns the known fact about the results of a function of another package,
// or nil.
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
//   - CallsFact: the function calls a function argument
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
		p.Implemented(func(method, by *types.Func) { export(method, p.prog.FuncValue(by)) })
	}
	for obj, fn := range p.Exported() {
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

// callsOf returns the parameters of function type that fn calls in a loop until the call
// succeeds. If the name of fn means a retry, as with Retry, callsOf also returns
// parameters that fn calls only once.
func (p *Program) callsOf(obj *types.Func, fn *ssa.Function) *CallsFact {
	fact := &CallsFact{}
	for i := range fn.Params {
		if again, known := p.callsParamAgain(fn, i, 0); known && (again || Retries(obj)) {
			fact.Params = append(fact.Params, calledParam{i, again})
		}
	}
	return fact
}

func (p *Program) resultsOf(fn *ssa.Function) *NondetFact {
	fact := &NondetFact{}
	for i := range fn.Signature.Results().Len() {
		if !Carries(fn.Signature.Results().At(i).Type()) {
			continue
		}
		for v := range Results(fn, i) {
			for _, o := range p.Trace(v, nil, false).Origins {
				if o.Kind != FromSource || len(fact.Results) >= maxResults {
					continue
				}
				source := o.Text
				if _, inner, ok := strings.Cut(source, SourceSeparator); ok {
					source = inner
				}
				r := nondetResult{Index: i, Path: o.Under, Source: source, Clock: o.Clock, Mixed: o.Mixed}
				if !slices.ContainsFunc(fact.Results, func(x nondetResult) bool { return x.Index == i && slices.Equal(x.Path, r.Path) }) {
					fact.Results = append(fact.Results, r)
				}
			}
		}
	}
	return fact
}

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
