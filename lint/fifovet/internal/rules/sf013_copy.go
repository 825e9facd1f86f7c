package rules

import (
	"fmt"
	"go/constant"
	"go/token"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// attrCopiesKey checks rule SF013: an attribute has the name of a member of the body, but
// gets its value from another expression.
func (p *audit) attrCopiesKey() {
	for _, l := range p.letters {
		if l.Evidence == message.NotFIFO {
			continue
		}
		for _, a := range l.Attributes.Known {
			if distinguishes(a) && (l.Carriage(a) != message.NotCarried || l.Member(p.Index, a) != nil) {
				p.checkCopy(p.r, l, a)
			}
		}
	}
}

// checkCopy reports SF013 if the attribute a and a member of the body have the same name,
// but their values come from different variables, calls or constants.
func (p *audit) checkCopy(r *reporter, l *message.Letter, a message.Attribute) {
	val := l.Member(p.Index, a)
	if val == nil {
		return
	}
	t := p.Trace(val, nil, true)
	for _, o := range a.Value.Origins {
		for _, b := range t.Origins {
			if o.Root == b.Root {
				return
			}
			if ca, ok := o.Root.(*ssa.Const); ok {
				if cb, ok := b.Root.(*ssa.Const); ok && ca.Value != nil && cb.Value != nil && constant.Compare(ca.Value, token.EQL, cb.Value) {
					return
				}
			}
		}
	}
	r.report(finding{
		rule: attrCopiesKey, fn: a.Fn, pos: a.Pos, arg: a.Arg, what: fmt.Sprintf("%q", a.Name),
		text: fmt.Sprintf("attribute %q repeats a member of the body from another value; set both from one variable", a.Name),
	})
}
