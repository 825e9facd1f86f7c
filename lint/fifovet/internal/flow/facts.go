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
