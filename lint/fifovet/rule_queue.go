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
	name, url := p.queueOf(m)
	if name == fifoName && m.absent(roleGroup) {
		r.report(finding{
			rule: missingGroupID, fn: m.fn, pos: m.root.Pos(), whole: true,
			text: fmt.Sprintf("%s is FIFO and the message has no MessageGroupId: SQS refuses it; set it to what has to stay in order", clip(lastPart(url))),
		})
	}
	e := p.evidenceOf(m)
	if e == surelyFIFO {
		p.checkDelay(r, m)
	}
	if e != notFIFO && (sdk || p.set.forbidRaw) && !isSDKModule(p.pass.Pkg.Path()) {
		for _, send := range m.sendCalls() {
			p.bypass(r, send, e == maybeFIFO)
		}
	}
}

// checkDelay is SF011, where no other branch is the one for FIFO queues.
func (p *program) checkDelay(r *reporter, m *message) {
	for _, s := range m.all(roleDelay) {
		delay, ok := constDelay(p.trace(s.value, nil, false))
		if !ok || p.excluded(m, s) {
			continue
		}
		r.report(finding{
			rule: fifoDelay, fn: s.instr.Parent(), pos: s.pos, fix: fixRemove,
			text: fmt.Sprintf("DelaySeconds is %s on a FIFO message: SQS refuses it; set the delay on the queue", delay),
		})
	}
}

// excluded reports whether the group, or the deduplication ID, is set on branches
// that exclude an assignment.
func (p *program) excluded(m *message, s set) bool {
	for _, r := range []role{roleGroup, roleDedup} {
		apart, sets := 0, 0
		for _, g := range m.all(r) {
			if isEmptyText(g.value) || g.instr == nil {
				continue
			}
			sets++
			if g.instr.Parent() == s.instr.Parent() && !comesBefore(g.instr, s.instr) && !comesBefore(s.instr, g.instr) {
				apart++
			}
		}
		if sets > 0 && apart == sets {
			return true
		}
	}
	return false
}

func (p *program) bypass(r *reporter, send ssa.CallInstruction, maybe bool) {
	callee := calleeOf(send.Common())
	if callee == nil || !isSend(callee) || strings.HasPrefix(callee.Name(), "Publish") {
		return // there is no other way to a topic
	}
	r.report(finding{
		rule: rawSendBypass, fn: send.Parent(), pos: send.Pos(), maybe: maybe,
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
