package rules

import (
	"fmt"
)

// constantDedupID checks rule SF003. It reports a deduplication ID that is a constant.
func (p *audit) constantDedupID() {
	for _, u := range p.dedupIDs() {
		if text, ok := u.Slice.Constant(); ok && u.Alone {
			p.r.report(about(u, constantDedupID, fmt.Sprintf("%s is the constant %q: SQS drops all events but one; derive it from the event", u.Name(), clip(text))))
		}
	}
}
