package rules

import (
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// rawSendBypass checks rule SF008. It reports calls of the AWS SDK to send to a FIFO
// queue, if the package imports sqsfifo directly or indirectly. With the flag
// -forbid-raw, the rule applies to all packages. Packages of the module sqsfifo are exempt.
func (p *audit) rawSendBypass() {
	if !p.reach.SDK && !p.set.forbidRaw || message.IsSDKModule(p.Pass.Pkg.Path()) {
		return
	}
	for _, m := range p.raw() {
		if e := p.EvidenceOf(m); e != message.NotFIFO {
			for _, send := range m.SendCalls() {
				p.bypass(send, e == message.MaybeFIFO)
			}
		}
	}
}

func (p *audit) bypass(send ssa.CallInstruction, maybe bool) {
	callee := flow.CalleeOf(send.Common())
	if callee == nil || !message.IsSend(callee) || strings.HasPrefix(callee.Name(), "Publish") {
		return // sqsfifo does not publish to topics
	}
	p.r.report(finding{
		rule: rawSendBypass, fn: send.Parent(), pos: send.Pos(), maybe: maybe,
		text: callee.Name() + " to a FIFO queue bypasses sqsfifo; send with a Producer, or give the reason in an ignore comment",
	})
}
