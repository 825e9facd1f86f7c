package rules

import (
	"fmt"
	"slices"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// constantBody checks rule SF004. It reports a constant body of a message without a
// deduplication ID.
func (p *audit) constantBody() {
	for _, u := range p.hashedBodies() {
		if text, ok := u.Slice.Constant(); ok && u.Alone && !u.Payload {
			f := about(u, constantBody, fmt.Sprintf("the body is the constant %q: SQS drops all events but one; put the event into the body", clip(text)))
			f.cause = identityCause{u.Key()}
			p.r.report(f)
		}
	}
}

// hashedBodies returns the bodies of messages that may be sent without a deduplication
// ID. SQS uses the hash of such a body as the ID.
func (p *audit) hashedBodies() []*message.Use {
	return slices.DeleteFunc(p.fifoUses(message.RoleBody), func(u *message.Use) bool { return !u.ContentBased })
}
