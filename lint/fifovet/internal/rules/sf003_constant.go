package rules

import (
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// constantDedupID checks rule SF003: a deduplication ID is a constant.
func (p *audit) constantDedupID() {
	for _, u := range p.dedupIDs() {
		p.constantID(p.r, u)
	}
}

// constantID reports SF003 if u, the deduplication ID of a message, is a constant.
func (p *audit) constantID(r *reporter, u *message.Use) {
	text, ok := u.Slice.Constant()
	if !ok || !u.Alone {
		return
	}
	r.report(finding{
		rule: constantDedupID, fn: u.Fn, pos: u.Pos, arg: u.Arg, maybe: u.Evidence == message.MaybeFIFO, cause: valueCause{u.Pos},
		text: fmt.Sprintf("%s is the constant %q: SQS drops all events but one; derive it from the event",
			u.Name(), clip(text)),
	})
}
