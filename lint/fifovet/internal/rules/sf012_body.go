package rules

import (
	"fmt"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// volatileBody checks rule SF012. It reports a body that changes with each attempt to send,
// if the message has no deduplication ID.
func (p *audit) volatileBody() {
	for _, u := range p.hashedBodies() {
		p.checkBody(u)
	}
}

// checkBody reports each part of the body that comes from a clock, from a random source,
// from a map's random order or from the time zone of the machine. A host name is permitted,
// because a retry comes from the same host. A clock reading that an iterator yields is the
// time of an event.
func (p *audit) checkBody(u *message.Use) {
	for _, o := range u.Slice.Origins {
		if !u.Written(o) {
			continue
		}
		f := about(u, volatileBody, "")
		f.source, f.name, f.cause = o, u.Field, p.causeOf(o)
		switch {
		case o.Kind == flow.FromSource && o.Text != "os.Hostname" && !(o.Clock && (o.Yielded() || u.Path.InFunction())):
			f.text = fmt.Sprintf("the body holds %s%s: a retry is stored twice; take it from the event", partOf(o), o.Text)
		case o.Kind == flow.FromOrder && o.Mixed && !message.SentInRange(u, o):
			f.cause = nil
			f.text = "the body has the random order of a map: a retry is stored twice; sort the keys"
		case o.Kind == flow.FromZone:
			if _, minted := u.Slice.Any(flow.FromSource); minted {
				continue // another finding is about this value
			}
			f.text = fmt.Sprintf("the body holds %s%s, in the machine's time zone: a retry on another machine is stored twice; use UTC", partOf(o), o.Text)
		default:
			continue
		}
		p.r.report(f)
	}
}

func partOf(o flow.Origin) string {
	part := o.Under
	if o.Encoded != nil {
		part = o.Part
	}
	if len(part) == 0 {
		return ""
	}
	return strings.Join(part, ".") + " from "
}
