package rules

import (
	"fmt"
	"slices"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// constantBody checks rule SF004: the body is a constant and there is no deduplication ID.
func (p *audit) constantBody() {
	for _, u := range p.hashedBodies() {
		if text, ok := u.Slice.Constant(); ok && u.Alone && !u.Payload {
			p.r.report(finding{
				rule: constantBody, fn: u.Fn, pos: u.Pos, arg: u.Arg, maybe: u.Evidence == message.MaybeFIFO, cause: identityCause{u.Key()},
				text: fmt.Sprintf("the body is the constant %q: SQS drops all events but one; put the event into the body", clip(text)),
			})
		}
	}
}

// hashedBodies returns the bodies of messages without a deduplication ID. SQS hashes such a
// body.
func (p *audit) hashedBodies() []*message.Use {
	return slices.DeleteFunc(slices.Clone(p.uses), func(u *message.Use) bool {
		return u.Role != message.RoleBody || !u.ContentBased || u.Evidence == message.NotFIFO
	})
}
