package flow

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// NondetFact describes a function whose results contain a clock reading or a random value.
// When go/analysis analyzes an importing package, it provides the facts of this package.
type NondetFact struct {
	Results []nondetResult
}

type nondetResult struct {
	Index  int
	Path   AccessPath // part of the result
	Source string
	Clock  bool
	Mixed  bool
}

// DerivedFact marks a function with the name of a generator of identifiers that computes
// its results from its arguments alone. The same arguments then give the same identifier.
type DerivedFact struct{}

// CallsFact describes a function that calls its arguments.
type CallsFact struct {
	Params []calledParam
}

// calledParam is a parameter that its function calls. Again means that the function
// calls the parameter again after a failure.
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

// ExportNondet exports facts about the functions that return a clock reading or a random
// value, and reports whether it exported any fact.
func (p *Program) ExportNondet() bool {
	var found bool
	for _, fn := range p.Fns {
		obj, ok := fn.Object().(*types.Func)
		if !ok || fn.Parent() != nil || !obj.Exported() || p.Exempt(fn) || p.Pass.Pkg.Name() == "main" {
			continue
		}
		fact := p.resultsOf(fn)
		if len(fact.Results) > 0 {
			p.Pass.ExportObjectFact(obj, fact)
			found = true
		}
	}
	if p.Pass.Pkg.Name() == "main" {
		return found
	}
	p.Implemented(func(method, by *types.Func) {
		fn := p.prog.FuncValue(by)
		if fn == nil || p.Exempt(fn) {
			return
		}
		if fact := p.resultsOf(fn); len(fact.Results) > 0 {
			p.Pass.ExportObjectFact(method, fact)
			found = true
		}
	})
	return found
}

// ExportDerived exports facts about the functions that are named like generators of
// identifiers and are not generators. It reports whether it exported any fact.
func (p *Program) ExportDerived() bool {
	var found bool
	for _, fn := range p.Fns {
		obj, ok := fn.Object().(*types.Func)
		if ok && fn.Parent() == nil && obj.Exported() && GuessedID(obj) && p.derives(fn) {
			p.Pass.ExportObjectFact(obj, &DerivedFact{})
			found = true
		}
	}
	return found
}

// derives reports whether the first result of a function comes only from its parameters and
// constants.
func (p *Program) derives(fn *ssa.Function) bool {
	given := false
	for _, block := range fn.Blocks {
		ret, ok := Last(block).(*ssa.Return)
		if !ok || len(ret.Results) == 0 || Failed(ret) {
			continue
		}
		for _, o := range p.Trace(ret.Results[0], nil, true).Origins {
			_, isParam := o.Root.(*ssa.Parameter)
			given = given || isParam
			if o.Kind != FromConst && !(o.Kind == FromPath && isParam) {
				return false
			}
		}
	}
	return given
}

// ExportCalls exports a fact about each function that calls an argument again until
// success. A function that calls an argument once, although its name contains a word such
// as Retry, also gets a fact. ExportCalls reports whether it exported any fact.
func (p *Program) ExportCalls() bool {
	var found bool
	for _, fn := range p.Fns {
		obj, ok := fn.Object().(*types.Func)
		if !ok || fn.Parent() != nil || !obj.Exported() {
			continue
		}
		fact := &CallsFact{}
		for i := range fn.Params {
			if again, known := p.callsParamAgain(fn, i, 0); known && (again || Retries(obj)) {
				fact.Params = append(fact.Params, calledParam{i, again})
			}
		}
		if len(fact.Params) > 0 {
			p.Pass.ExportObjectFact(obj, fact)
			found = true
		}
	}
	return found
}

func (p *Program) resultsOf(fn *ssa.Function) *NondetFact {
	fact := &NondetFact{}
	for i := range fn.Signature.Results().Len() {
		if !Carries(fn.Signature.Results().At(i).Type()) {
			continue
		}
		for _, block := range fn.Blocks {
			if len(block.Instrs) == 0 {
				continue
			}
			ret, ok := block.Instrs[len(block.Instrs)-1].(*ssa.Return)
			if !ok || i >= len(ret.Results) || Failed(ret) && i < len(ret.Results)-1 {
				continue
			}
			for _, o := range p.Trace(ret.Results[i], nil, false).Origins {
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
