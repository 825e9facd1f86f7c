package fifovet

import (
	"fmt"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// checkQueue reports what the queue refuses (SF009, SF011) and sends that
// bypass the SDK (SF008).
func (p *program) checkQueue(r *reporter, m *message, sdk bool) {
	if m.shape.sdk || m.shape.batch {
		return
	}
	url, named := p.fifoURL(m)
	if named && m.absent(roleGroup) {
		r.report(finding{
			rule: missingGroupID, fn: m.fn, pos: m.root.Pos(), whole: true,
			text: fmt.Sprintf("%s is FIFO and the message has no MessageGroupId: SQS refuses it; set it to what has to stay in order", clip(lastPart(url))),
		})
	}
	if !p.fifo(m) {
		return
	}
	for _, s := range m.sets[roleDelay] {
		if delay, ok := constDelay(p.trace(s.value, nil, false)); ok {
			r.report(finding{
				rule: fifoDelay, fn: m.fn, pos: s.pos, fix: fixRemove,
				text: fmt.Sprintf("DelaySeconds is %s on a FIFO message: SQS refuses it; set the delay on the queue", delay),
			})
		}
	}
	if (sdk || p.set.forbidRaw) && !isSDKModule(p.pass.Pkg.Path()) {
		for _, send := range m.sendCalls() {
			p.bypass(r, send)
		}
	}
}

func (p *program) bypass(r *reporter, send ssa.CallInstruction) {
	callee := calleeOf(send.Common())
	if callee == nil || strings.HasPrefix(callee.Name(), "Publish") {
		return // there is no other way to a topic
	}
	r.report(finding{
		rule: rawSendBypass, fn: send.Parent(), pos: send.Pos(),
		text: callee.Name() + " to a FIFO queue bypasses sqsfifo: neither the envelope nor the deduplication window is checked; use a Producer, or say why not in an ignore comment",
	})
}

// constDelay returns a delay that is one constant and not zero.
func constDelay(t *tracer) (string, bool) {
	text, ok := t.constant()
	if len(t.origins) != 1 {
		return "", false
	}
	return text, ok && strings.Trim(text, "0") != ""
}

func lastPart(url string) string {
	return url[strings.LastIndexAny(url, "/:")+1:]
}
