package rules

import (
	"slices"
	"strconv"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// fifoDelay checks rule SF011. It reports a delay of a single message to a FIFO queue.
func (p *audit) fifoDelay() {
	for _, u := range p.fifoUses(message.RoleDelay) {
		if u.Evidence != message.SurelyFIFO || u.M != nil && (u.M.Shape.Sdk || neverTogether(u.M, u.Instr)) {
			continue
		}
		f := finding{rule: fifoDelay, fn: u.Fn, pos: u.Pos, arg: u.Arg}
		delay := longestDelay(u.Slice.Origins)
		switch {
		case delay > 0 && len(u.Slice.Origins) == 1:
			if u.M != nil {
				f.fix = removeField
			}
			f.say(lint.Error, "%s is %d on a FIFO message: SQS refuses it; set the delay on the queue", u.Name(), delay)
		case p.variableDelay(u):
			f.say(lint.Warning, "%s is set on a FIFO message: SQS refuses every delay; set the delay on the queue", u.Name())
		case delay > 0:
			f.say(lint.Warning, "%s may be %d on a FIFO message: SQS refuses it; set the delay on the queue", u.Name(), delay)
		default:
			continue
		}
		p.r.report(f)
	}
}

// variableDelay reports whether the delay of a message is not constant and the queue has
// the name of a FIFO queue. A delay from a function parameter does not count if this
// package calls the function, because fifoDelay checks the arguments of the calls.
func (p *audit) variableDelay(u *message.Use) bool {
	if u.M == nil {
		return false
	}
	if name, _ := p.QueueOf(u.M); name != message.FifoName {
		return false
	}
	return slices.ContainsFunc(u.Slice.Origins, func(o flow.Origin) bool {
		param, ok := o.Root.(*ssa.Parameter)
		called := ok && len(o.Path) == 0 && len(p.Direct[param.Parent()]) > 0
		return (o.Kind == flow.FromPath || o.Kind == flow.FromSource || o.Kind == flow.FromBucket) && !called
	})
}

// neverTogether reports whether the code sets the group ID, or the deduplication ID, but
// never together with the delay. The messages with the delay probably go to a standard
// queue. The instruction setDelay sets the delay.
func neverTogether(m *message.Message, setDelay ssa.Instruction) bool {
	return slices.ContainsFunc([]message.Role{message.RoleGroup, message.RoleDedup}, func(r message.Role) bool {
		sets := slices.DeleteFunc(m.All(r), func(g message.Set) bool { return message.IsEmptyText(g.Value) })
		return len(sets) > 0 && !slices.ContainsFunc(sets, func(g message.Set) bool {
			return g.Instr.Parent() != setDelay.Parent() || flow.ComesBefore(g.Instr, setDelay) || flow.ComesBefore(setDelay, g.Instr)
		})
	})
}

// longestDelay returns the largest constant among the possible values of a delay, or 0.
func longestDelay(origins []flow.Origin) int {
	longest := 0
	for _, o := range origins {
		if n, err := strconv.Atoi(o.Text); err == nil && o.Kind == flow.FromConst && (!o.Mixed || len(origins) == 1) {
			longest = max(longest, n)
		}
	}
	return longest
}
