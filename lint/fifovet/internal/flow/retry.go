package flow

import (
	"go/types"
	"path"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// Retries reports whether the name of a function, or of its type or package, means a
// retry.
func Retries(obj *types.Func) bool {
	if hookName.MatchString(obj.Name()) {
		return false
	}
	name := Short(obj)
	if obj.Pkg() != nil { // for a package such as backoff/v4, the path tells more than the name
		name = path.Base(majorVersion.ReplaceAllString(pathOf(obj), "")) + "." + withType(obj)
	}
	return retryName.MatchString(name)
}

// RetryBody reports whether the program passes fn as an argument to a function, such as
// retry.Do(fn), that calls fn again until fn succeeds.
func (p *Program) RetryBody(fn *ssa.Function) bool {
	return slices.ContainsFunc(p.passed[functionKey(fn)], func(use passedFunction) bool { return p.callsAgain(use.call.Common(), use.arg) })
}

// callsAgain reports whether a call such as retry.Do(send) calls its argument again until
// the argument succeeds. The parameter `arg` is the argument's number.
//
// callsAgain looks for the answer in the body of the called function, then in its
// FunctionFact, and finally in its name.
func (p *Program) callsAgain(c *ssa.CallCommon, arg int) bool {
	if fn := p.Body(c); fn != nil {
		if again, known := p.callsParamAgain(fn, arg, 0); known {
			return again
		}
	}
	callee := p.Callee(c)
	if callee == nil {
		return false
	}
	for _, known := range p.fact(callee).Calls {
		if known.Index == arg {
			return known.Again
		}
	}
	return Retries(callee)
}

// callsParamAgain reports whether the parameter fn.Params[param] is called again until the
// call succeeds. The call may be in fn, or in a function of this package to which fn passes
// the parameter. The result `known` is false if fn does not call the parameter, or if the
// search finds another use of the parameter before it finds a repeated call.
func (p *Program) callsParamAgain(fn *ssa.Function, param, depth int) (again, known bool) {
	if param >= len(fn.Params) || !IsFunc(fn.Params[param].Type()) || depth > MaxForwards {
		return false, false
	}
	called := false
	for _, instr := range Referrers(fn.Params[param]) {
		c, ok := instr.(ssa.CallInstruction)
		switch {
		case ok && c.Common().Value == ssa.Value(fn.Params[param]):
			called = true
			if isRetriedInLoop(c) {
				return true, true
			}
		case ok:
			inner := p.Body(c.Common())
			i := slices.Index(Args(c.Common()), ssa.Value(fn.Params[param]))
			if inner == nil || i < 0 {
				return false, false
			}
			innerAgain, innerKnown := p.callsParamAgain(inner, i, depth+1)
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

// isRetriedInLoop reports whether the loop around a call ends after a success of the call
// and continues after a failure.
func isRetriedInLoop(c ssa.CallInstruction) bool {
	l := LoopOf(c.Block(), c)
	return l != nil && !l.blocks[l.succeeded]
}
