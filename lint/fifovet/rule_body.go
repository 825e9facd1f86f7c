package fifovet

import (
	"fmt"
	"strings"
)

// checkBody reports bodies that cannot tell events apart, or that tell a retry
// from its first attempt, where nothing but the body does.
func (p *program) checkBody(r *reporter, u *use) {
	if u.role != roleBody || !u.contentBased || u.evidence == notFIFO {
		return
	}
	for _, o := range u.slice.origins {
		if !u.written(o) {
			continue
		}
		switch {
		case o.kind == fromSource:
			r.report(finding{
				rule: volatileBody, fn: u.fn, pos: u.pos, arg: u.arg, source: o, maybe: u.evidence == maybeFIFO, what: u.field, cause: p.causeOf(o),
				text: fmt.Sprintf("the body holds %s%s: a retry has another body, and SQS stores it as a new message; mint it where the event is made and store it with the event",
					partOf(o), o.text),
			})
			return
		case o.kind == fromOrder && o.mixed && !sentInRange(u, o):
			r.report(finding{
				rule: volatileBody, fn: u.fn, pos: u.pos, arg: u.arg, source: o, maybe: u.evidence == maybeFIFO, what: u.field,
				text: "the body is put together in the order in which a map is ranged over, which is another one each time: a retry has another body, and SQS stores it as a new message; " +
					"sort the keys, or build the body with canonicaljson",
			})
			return
		}
	}
	if text, ok := u.slice.constant(); ok && u.alone && !u.payload {
		r.report(finding{
			rule: constantBody, fn: u.fn, pos: u.pos, arg: u.arg, maybe: u.evidence == maybeFIFO, cause: identityCause{u.key()},
			text: fmt.Sprintf("the body is the constant %q and there is no deduplication ID: SQS takes one message in five minutes and drops every other event; put what identifies the event into the body",
				clip(text)),
		})
	}
}

func partOf(o origin) string {
	part := o.under
	if o.encoded != nil {
		part = o.part
	}
	if len(part) == 0 {
		return ""
	}
	return strings.Join(part, ".") + " from "
}
