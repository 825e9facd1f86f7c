package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// fifoDelay checks rule SF011. It reports a delay of a single message to a FIFO queue.
func (p *audit) fifoDelay() {
	for _, u := range p.uses {
		if u.Role != message.RoleDelay || u.Evidence != message.SurelyFIFO || u.M != nil && (u.M.Shape.Sdk || p.neverTogether(u.M, u.Instr)) {
			continue
		}
		f := finding{rule: fifoDelay, fn: u.Fn, pos: u.Pos, arg: u.Arg}
		if delay, ok := constDelay(u.Slice); ok {
			if u.M != nil {
				f.fix = fixRemove
			}
			f.text = fmt.Sprintf("%s is %s on a FIFO message: SQS refuses it; set the delay on the queue", u.Name(), delay)
		} else if p.variableDelay(u) {
			f.lower(lint.Warning)
			f.text = u.Name() + " is set on a FIFO message: SQS refuses every delay; set the delay on the queue"
		} else if delay, ok := oneDelay(u.Slice); ok {
			f.lower(lint.Warning)
			f.text = fmt.Sprintf("%s may be %s on a FIFO message: SQS refuses it; set the delay on the queue", u.Name(), delay)
		} else {
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
func (p *audit) neverTogether(m *message.Message, setDelay ssa.Instruction) bool {
	for _, r := range []message.Role{message.RoleGroup, message.RoleDedup} {
		apart, sets := 0, 0
		for _, g := range m.All(r) {
			if message.IsEmptyText(g.Value) || g.Instr == nil {
				continue
			}
			sets++
			if g.Instr.Parent() == setDelay.Parent() && !flow.ComesBefore(g.Instr, setDelay) && !flow.ComesBefore(setDelay, g.Instr) {
				apart++
			}
		}
		if sets > 0 && apart == sets {
			return true
		}
	}
	return false
}

// oneDelay returns the largest constant among the possible values of a delay, and false
// if no constant is above zero.
func oneDelay(t *flow.Tracer) (string, bool) {
	longest := 0
	for _, o := range t.Origins {
		if n, err := strconv.Atoi(o.Text); err == nil && o.Kind == flow.FromConst && !o.Mixed {
			longest = max(longest, n)
		}
	}
	return strconv.Itoa(longest), longest > 0
}

// constDelay returns the delay if it is a single constant other than zero.
func constDelay(t *flow.Tracer) (string, bool) {
	text, ok := t.Constant()
	if len(t.Origins) != 1 {
		return "", false
	}
	return text, ok && strings.Trim(text, "0") != ""
}
