package rules

import (
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// attrCopiesKey checks rule SF013. It reports an attribute and a member of the body with
// the same name, if their values come from different expressions. The values may then
// differ.
func (p *audit) attrCopiesKey() {
	for _, l := range p.letters {
		if l.Evidence == message.NotFIFO {
			continue
		}
		for _, a := range l.Attributes.Known {
			if distinguishes(a) {
				p.checkCopy(l, a)
			}
		}
	}
}

// checkCopy reports SF013 if an attribute and a member of the body have the same name, but
// their values come from different variables, calls or constants.
func (p *audit) checkCopy(l *message.Letter, a message.Attribute) {
	val := l.Member(p.Index, a)
	if val == nil {
		return
	}
	t := p.Trace(val, nil, true)
	for _, o := range a.Value.Origins {
		for _, b := range t.Origins {
			if o.Root == b.Root || o.Kind == flow.FromConst && b.Kind == flow.FromConst && o.Text == b.Text {
				return
			}
		}
	}
	p.r.report(finding{
		rule: attrCopiesKey, fn: a.Fn, pos: a.Pos, arg: a.Arg, name: fmt.Sprintf("%q", a.Name),
		text: fmt.Sprintf("attribute %q repeats a member of the body from another value; set both from one variable", a.Name),
	})
}
