package fifovet

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// reachFact is about a package and what it imports, directly or not. It lets a
// package that has nothing to do with queues be left alone at once.
type reachFact struct {
	SDK   bool // imports this project's SDK
	Facts bool // has functions with facts
}

// nondetFact is about a function that returns what a clock or a random source
// gave it.
type nondetFact struct {
	Results []nondetResult
}

type nondetResult struct {
	Index  int
	Path   accessPath // which part of the result
	Source string
	Clock  bool
	Mixed  bool
}

// sinkFact is about a function that puts its arguments into messages.
type sinkFact struct {
	Params []paramSink
}

// paramSink is one argument that ends in a message. The receiver of a method is
// argument 0.
type paramSink struct {
	Index int
	Path  accessPath // which part of the argument
	Role  role
	Field string // as the API names it, or the name of the attribute

	// Evidence is what the function knows of the queue. Where its name is an
	// argument, the callers know better.
	Evidence evidence

	// Alone says that the field is made of this argument and constants.
	Alone bool

	// ContentBased says, for a body, that nothing but the body tells the
	// message apart.
	ContentBased bool

	// Unless is 1 + the argument that is the deduplication ID, or has it as a part:
	// where it is given, not only the body tells the message apart.
	Unless     int
	UnlessPath accessPath

	// Many says that the argument goes into several messages.
	Many bool

	// Encoded says that the argument is encoded as JSON on the way.
	Encoded bool
}

func (s paramSink) same(o paramSink) bool {
	return s.Index == o.Index && s.Role == o.Role && s.Field == o.Field && slices.Equal(s.Path, o.Path)
}

// derivedFact is about a function that is called like a generator of identifiers and
// returns what is made from its arguments alone.
type derivedFact struct{}

// callsFact is about a function that calls its arguments.
type callsFact struct {
	Params []calledParam
}

// calledParam is one such argument: whether it is called again after it failed.
type calledParam struct {
	Index int
	Again bool
}

func (*derivedFact) AFact() {}
func (*callsFact) AFact()   {}

func (f *derivedFact) String() string { return "derived" }

func (f *callsFact) String() string {
	for _, p := range f.Params {
		if p.Again {
			return "retries"
		}
	}
	return "once"
}

func (*reachFact) AFact()  {}
func (*nondetFact) AFact() {}
func (*sinkFact) AFact()   {}

func (f *reachFact) String() string {
	return "reach"
}

func (f *nondetFact) String() string {
	var parts []string
	for _, r := range f.Results {
		parts = append(parts, strings.Join(append([]string{"nondet"}, r.Path...), "."))
	}
	return strings.Join(parts, " ")
}

func (f *sinkFact) String() string {
	var parts []string
	for _, s := range f.Params {
		parts = append(parts, s.Field)
	}
	return "sink " + strings.Join(parts, " ")
}

// sourceSeparator stands between a function of another package and the source that
// it calls.
const sourceSeparator = ", which calls "

// nondetOf returns what is known about the results of a function of another
// package.
func (p *program) nondetOf(obj *types.Func) *nondetFact {
	if obj.Pkg() == p.pass.Pkg || obj.Pkg() == nil {
		return nil
	}
	var fact nondetFact
	if p.pass.ImportObjectFact(obj, &fact) {
		return &fact
	}
	return nil
}

// sinksOf returns which arguments of a function end in messages.
func (p *program) sinksOf(obj *types.Func) []paramSink {
	if obj.Pkg() == p.pass.Pkg {
		return p.sinks[obj]
	}
	var fact sinkFact
	if obj.Pkg() != nil && p.pass.ImportObjectFact(obj, &fact) {
		return fact.Params
	}
	return nil
}

// exportNondet records the functions that hand on a clock reading or something
// random, and reports whether there are any.
func (p *program) exportNondet() bool {
	var found bool
	for _, fn := range p.fns {
		obj, ok := fn.Object().(*types.Func)
		if !ok || fn.Parent() != nil || !obj.Exported() || p.exempt(fn) || p.pass.Pkg.Name() == "main" {
			continue
		}
		fact := p.resultsOf(fn)
		if len(fact.Results) > 0 {
			p.pass.ExportObjectFact(obj, fact)
			found = true
		}
	}
	return found
}

// exportDerived records the functions that only look like generators, and reports
// whether there are any.
func (p *program) exportDerived() bool {
	var found bool
	for _, fn := range p.fns {
		obj, ok := fn.Object().(*types.Func)
		if ok && fn.Parent() == nil && obj.Exported() && guessedID(obj) && p.derives(fn) {
			p.pass.ExportObjectFact(obj, &derivedFact{})
			found = true
		}
	}
	return found
}

// derives reports whether all that a function returns is made from its parameters.
func (p *program) derives(fn *ssa.Function) bool {
	given := false
	for _, block := range fn.Blocks {
		ret, ok := last(block).(*ssa.Return)
		if !ok || len(ret.Results) == 0 || failed(ret) {
			continue
		}
		for _, o := range p.trace(ret.Results[0], nil, true).origins {
			_, isParam := o.root.(*ssa.Parameter)
			given = given || isParam
			if o.kind != fromConst && !(o.kind == fromPath && isParam) {
				return false
			}
		}
	}
	return given
}

// exportCalls records the functions that call an argument again until it succeeds,
// and those that are called so and do not. It reports whether there are any.
func (p *program) exportCalls() bool {
	var found bool
	for _, fn := range p.fns {
		obj, ok := fn.Object().(*types.Func)
		if !ok || fn.Parent() != nil || !obj.Exported() {
			continue
		}
		fact := &callsFact{}
		for i := range fn.Params {
			if again, known := p.repeats(fn, i, 0); known && (again || retries(obj)) {
				fact.Params = append(fact.Params, calledParam{i, again})
			}
		}
		if len(fact.Params) > 0 {
			p.pass.ExportObjectFact(obj, fact)
			found = true
		}
	}
	return found
}

func (p *program) resultsOf(fn *ssa.Function) *nondetFact {
	fact := &nondetFact{}
	for i := range fn.Signature.Results().Len() {
		if !carries(fn.Signature.Results().At(i).Type()) {
			continue
		}
		for _, block := range fn.Blocks {
			if len(block.Instrs) == 0 {
				continue
			}
			ret, ok := block.Instrs[len(block.Instrs)-1].(*ssa.Return)
			if !ok || i >= len(ret.Results) || failed(ret) && i < len(ret.Results)-1 {
				continue
			}
			for _, o := range p.trace(ret.Results[i], nil, false).origins {
				if o.kind != fromSource || len(fact.Results) >= maxResults {
					continue
				}
				source := o.text
				if _, inner, ok := strings.Cut(source, sourceSeparator); ok {
					source = inner
				}
				r := nondetResult{Index: i, Path: o.under, Source: source, Clock: o.clock, Mixed: o.mixed}
				if !slices.ContainsFunc(fact.Results, func(x nondetResult) bool { return x.Index == i && slices.Equal(x.Path, r.Path) }) {
					fact.Results = append(fact.Results, r)
				}
			}
		}
	}
	return fact
}

// carries reports whether a value of the type can hold an identifier or a time.
func carries(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Info()&(types.IsString|types.IsInteger) != 0
	case *types.Pointer:
		return carries(u.Elem())
	case *types.Struct, *types.Array, *types.Slice, *types.Map:
		return true
	}
	return false
}

// exportSinks records the functions that put their arguments into messages, and
// reports whether there are any.
func (p *program) exportSinks() bool {
	var found bool
	for _, fn := range p.fns {
		obj, ok := fn.Object().(*types.Func)
		if ok && fn.Parent() == nil && obj.Exported() && len(p.sinks[obj]) > 0 {
			p.pass.ExportObjectFact(obj, &sinkFact{Params: p.sinks[obj]})
			found = true
		}
	}
	return found
}
