package rules

import (
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// missingGroupID checks rule SF009. It reports a message without a group ID if the queue is
// FIFO or the message has a deduplication ID.
func (p *audit) missingGroupID() {
	for _, m := range p.raw() {
		if !m.Absent(message.RoleGroup) {
			continue
		}
		switch name, url := p.QueueOf(m); {
		case name == message.FifoName:
			p.withoutGroup(finding{fn: m.Fn, pos: m.Root.Pos(), whole: true}, url)
		case name == message.StandardName:
		case m.Has(message.RoleDedup) && !m.Absent(message.RoleDedup):
			p.r.report(finding{
				rule: missingGroupID, fn: m.Fn, pos: m.Root.Pos(), whole: true,
				text: "MessageDeduplicationId without a MessageGroupId: SQS refuses it; set the group",
			})
		}
	}
	for _, u := range p.uses {
		if u.Role != message.RoleURL || !u.NoGroup || u.M != nil {
			continue
		}
		if name, url := p.Queue(u); name == message.FifoName {
			p.withoutGroup(finding{fn: u.Fn, pos: u.Pos, arg: u.Arg}, url)
		}
	}
}

func (p *audit) withoutGroup(f finding, url string) {
	f.rule = missingGroupID
	name := clip(lastPart(url))
	if strings.HasPrefix(name, ".") || strings.Contains(name, "%") {
		name = "the queue"
	}
	f.text = name + " is FIFO, and the message has no MessageGroupId: SQS refuses it; set the group"
	p.r.report(f)
}

func lastPart(url string) string {
	return url[strings.LastIndexAny(url, "/:")+1:]
}
