package rules

import (
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// constantDedupID checks rule SF003. It reports a deduplication ID that is a constant.
func (p *audit) constantDedupID() {
	for _, u := range p.dedupIDs() {
		if text, ok := u.Slice.Constant(); ok && u.Alone {
			p.r.report(finding{
				rule: constantDedupID, fn: u.Fn, pos: u.Pos, arg: u.Arg, maybe: u.Evidence == message.MaybeFIFO, cause: valueCause{u.Pos},
				text: fmt.Sprintf("%s is the constant %q: SQS drops all events but one; derive it from the event", u.Name(), clip(text)),
			})
		}
	}
}
