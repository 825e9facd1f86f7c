package fifovet

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// retries reports whether a function is called, or belongs to a type or package
// that is called, after trying again.
func retries(obj *types.Func) bool {
	if hookName.MatchString(obj.Name()) {
		return false
	}
	name := short(obj)
	if obj.Pkg() != nil {
		path := majorVersion.ReplaceAllString(obj.Pkg().Path(), "")
		name = path[strings.LastIndexByte(path, '/')+1:] + strings.TrimPrefix(qualified(obj), obj.Pkg().Path())
	}
	return retryName.MatchString(name)
}

// retryBody reports whether a function is handed to another one that calls it
// again until it succeeds.
func (p *program) retryBody(fn *ssa.Function) bool {
	values := []ssa.Value{fn}
	for of, made := range p.closures {
		if of != fn && (of.Object() == nil || of.Object() != fn.Object()) { // a method value is a closure over the method
			continue
		}
		for _, m := range made {
			values = append(values, m)
		}
	}
	for _, v := range values {
		for _, c := range p.calls {
			for i, arg := range c.instr.Common().Args {
				if (arg == v || isConversionOf(arg, v)) && p.callsAgain(c, i) {
					return true
				}
			}
		}
	}
	return false
}

// callsAgain reports whether a callee calls one of its arguments until it succeeds.
// Its name decides only where its body is not known.
func (p *program) callsAgain(c call, arg int) bool {
	if fn := staticBody(c.instr.Common()); fn != nil {
		if again, known := p.repeats(fn, arg, 0); known {
			return again
		}
	}
	var fact callsFact
	if c.callee.Pkg() != p.pass.Pkg && p.pass.ImportObjectFact(c.callee, &fact) {
		for _, known := range fact.Params {
			if known.Index == arg {
				return known.Again
			}
		}
	}
	return retries(c.callee)
}

// repeats reports whether a function calls one of its parameters again after it
// failed. It is known where the parameter is called and nothing else happens to it.
func (p *program) repeats(fn *ssa.Function, param, depth int) (again, known bool) {
	if param >= len(fn.Params) || !isFunc(fn.Params[param].Type()) || depth > maxForwards {
		return false, false
	}
	called := false
	for _, instr := range referrers(fn.Params[param]) {
		c, ok := instr.(ssa.CallInstruction)
		switch {
		case ok && c.Common().Value == ssa.Value(fn.Params[param]):
			called = true
			if tries(c) {
				return true, true
			}
		case ok:
			inner := staticBody(c.Common())
			i := slices.Index(c.Common().Args, ssa.Value(fn.Params[param]))
			if inner == nil || i < 0 {
				return false, false
			}
			innerAgain, innerKnown := p.repeats(inner, i, depth+1)
			if !innerKnown || innerAgain {
				return innerAgain, innerKnown
			}
			called = true
		default:
			return false, false
		}
	}
	return false, called
}

// tries reports whether a call is in a loop that is left once it succeeded and goes
// on when it failed.
func tries(c ssa.CallInstruction) bool {
	blocks := cycle(c.Block())
	for b := range blocks {
		cond, ok := last(b).(*ssa.If)
		if !ok {
			continue
		}
		if failed, succeeded, ok := branches(cond, c); ok && blocks[failed] && !blocks[succeeded] {
			return true
		}
	}
	return false
}

func isConversionOf(arg, v ssa.Value) bool {
	switch arg := arg.(type) {
	case *ssa.ChangeType:
		return arg.X == v
	case *ssa.MakeInterface:
		return arg.X == v
	}
	return false
}
