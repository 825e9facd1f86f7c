package rules

import (
	"fmt"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// remintedOnRetry checks rule SF006. It reports a retry that makes a new ID for each
// attempt to send.
func (p *audit) remintedOnRetry() {
	for _, u := range p.uses {
		p.checkRetry(u)
	}
}

// checkRetry reports SF006 if the value u comes from a clock or random source, and each
// retry of the send calls this source again. SQS then stores the retry as another event.
func (p *audit) checkRetry(u *message.Use) {
	if u.Evidence == message.NotFIFO || u.Role != message.RoleDedup && u.Role != message.RoleBody && u.Role != message.RoleEventID && u.Role != message.RoleTime {
		return
	}
	if u.Role == message.RoleBody && !u.ContentBased {
		return
	}
	for _, o := range u.Slice.Origins {
		counter := o.Kind == flow.FromUnknown && isCounter(o.Root)
		if o.Kind != flow.FromSource && !counter || o.Seeded || !u.Written(o) {
			continue
		}
		sourceCall := o.At()
		if sourceCall == nil || sourceCall.Block() == nil {
			continue
		}
		for _, try := range p.attempts(u, sourceCall) {
			if !p.isRetried(try, maxLift) {
				continue
			}
			f := finding{
				rule: remintedOnRetry, fn: sourceCall.Parent(), pos: sourceCall.Pos(), maybe: u.Evidence == message.MaybeFIFO, name: u.Field, cause: p.causeOf(o),
				// To call the source once, before the first attempt, is not enough: a caller
				// may repeat the function.
				text: fmt.Sprintf("%s runs again for each attempt (%s): a retry is stored twice; derive it from the event", o.Text, u.Field),
			}
			if counter {
				if _, minted := u.Slice.Any(flow.FromSource); minted {
					break // another finding is about this value
				}
				f.fn, f.pos, f.arg, f.cause = u.Fn, u.Pos, u.Arg, valueCause{u.Pos}
				f.text = u.Name() + " contains the number of the attempt: a retry is stored twice; leave the number out"
			}
			p.r.report(f)
			break
		}
	}
}

// isCounter reports whether a value counts the rounds of a loop, or is a variable plus an
// integer.
func isCounter(v ssa.Value) bool {
	switch v.(type) {
	case *ssa.Phi, *ssa.BinOp:
		return true
	}
	return false
}

// attempt is a send of a message with a value from a clock or random source.
type attempt struct {
	sourceCall ssa.Instruction     // calls the source, directly or through other functions
	send       ssa.CallInstruction // in the same function as sourceCall
	values     []ssa.Value         // values in the message
}

// attempts returns the sends of the message with the value u. The instruction sourceCall
// calls the clock or random source. If the function with sourceCall returns the message to a
// caller that sends the message, attempt.sourceCall is the caller's call of this function.
func (p *audit) attempts(u *message.Use, sourceCall ssa.Instruction) []attempt {
	var tries []attempt
	for _, send := range u.SendCalls() {
		if send.Parent() == sourceCall.Parent() {
			tries = append(tries, attempt{sourceCall, send, messageValues(u)})
		}
	}
	if u.M == nil {
		return tries
	}
	for _, d := range u.M.Derived {
		call, ok := d.Root.(*ssa.Call)
		if e, isExtract := d.Root.(*ssa.Extract); isExtract {
			call, ok = e.Tuple.(*ssa.Call)
		}
		if !ok || p.Body(call.Common()) != sourceCall.Parent() {
			continue
		}
		for _, send := range d.SendCalls() {
			if send.Parent() == call.Parent() {
				tries = append(tries, attempt{call, send, withoutContext(flow.Args(call.Common()))})
			}
		}
	}
	return tries
}

// isRetried reports whether the code repeats a failed send with a new value from the
// clock or random source. It also looks at callers, up to the given number of levels.
func (p *audit) isRetried(try attempt, levels int) bool {
	if loop := flow.LoopOf(try.sourceCall.Block(), try.send); loop != nil && p.Again(try.values, loop) {
		return true
	}
	fn := try.send.Parent()
	if p.RetryBody(fn) || callsItself(fn, try.send) {
		return true
	}
	if levels == 0 || !p.returnsErrorOf(fn, try.send) {
		return false
	}
	return slices.ContainsFunc(p.Direct[fn], func(c ssa.CallInstruction) bool {
		return c.Parent() != fn && p.isRetried(attempt{c, c, withoutContext(flow.Args(c.Common()))}, levels-1)
	})
}

// returnsErrorOf reports whether a function returns the error of a send.
func (p *audit) returnsErrorOf(fn *ssa.Function, send ssa.CallInstruction) bool {
	call := send.Value()
	if call == nil || !flow.ReturnsError(fn.Signature) {
		return false
	}
	return slices.ContainsFunc(flow.Results(fn, fn.Signature.Results().Len()-1), func(err ssa.Value) bool {
		return flow.IsErrorOf(err, send, 0) || p.Trace(err, nil, true).Visited[call]
	})
}

// callsItself reports whether a function calls itself with the same arguments after a
// failed send.
func callsItself(fn *ssa.Function, send ssa.CallInstruction) bool {
	return flow.Any(flow.Instructions(fn), func(instr ssa.Instruction) bool {
		c, ok := instr.(ssa.CallInstruction)
		return ok && c.Common().StaticCallee() == fn && afterError(c, send) && sameArguments(fn, c)
	})
}

// sameArguments guesses whether a recursive call handles the same message again. The call
// must pass at least one parameter unchanged, not counting the receiver and the context.
// A call with a part of a slice, such as events[1:], handles other messages.
func sameArguments(fn *ssa.Function, c ssa.CallInstruction) bool {
	same := false
	for i, arg := range c.Common().Args {
		switch {
		case i >= len(fn.Params) || i == 0 && fn.Signature.Recv() != nil || isContextType(arg.Type()):
		case arg == ssa.Value(fn.Params[i]) || holdsParameter(arg, fn.Params[i]):
			same = true
		default:
			if _, cut := arg.(*ssa.Slice); cut {
				return false
			}
		}
	}
	return same
}

// holdsParameter reports whether v is read from a variable, and the function somewhere
// assigns the parameter `param` to this variable.
func holdsParameter(v ssa.Value, param *ssa.Parameter) bool {
	load, ok := v.(*ssa.UnOp)
	if !ok {
		return false
	}
	cell, ok := load.X.(*ssa.Alloc)
	return ok && slices.Contains(flow.Stores(cell), ssa.Value(param))
}

func withoutContext(args []ssa.Value) []ssa.Value {
	return slices.DeleteFunc(slices.Clone(args), func(v ssa.Value) bool { return isContextType(v.Type()) })
}

func isContextType(t types.Type) bool {
	return flow.TypeName(t) == "Context" && flow.PackagePath(t) == "context"
}

func messageValues(u *message.Use) []ssa.Value {
	if u.M == nil {
		if call, ok := u.Instr.(ssa.CallInstruction); ok {
			return withoutContext(flow.Args(call.Common()))
		}
		return nil
	}
	var values []ssa.Value
	for _, r := range []message.Role{message.RoleBody, message.RoleDedup, message.RoleGroup} {
		for _, s := range u.M.Sets[r] {
			values = append(values, s.Value)
		}
	}
	return values
}
