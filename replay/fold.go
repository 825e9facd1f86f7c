package replay

import "time"

// eventKey is a dedupe key with its scope.
type eventKey struct{ source, key string }

// variants finds different messages of one event. For each event, the field first has one
// item for each different message: the first such item. The numbers are indices in the
// slice all.
type variants struct {
	all      []PlannedItem
	distinct map[eventKey][]int
}

// joinRecords finds items with the same message, that is, the same event, group and body
// hash. It adds the records of the later items to the first item, and marks the later
// items as repeated. It ignores drifted items and items without a dedupe key.
func joinRecords(all []PlannedItem) variants {
	v := variants{all: all, distinct: make(map[eventKey][]int, len(all))}
	for i := range all {
		item := &all[i]
		if item.Action == ActionDrift || item.DedupeKey == "" {
			continue
		}
		if first := v.sameMessage(item); first != nil {
			first.join(item)
			item.Reason = reasonRepeated
			continue
		}
		k := eventKey{item.EventSource, item.DedupeKey}
		v.distinct[k] = append(v.distinct[k], i)
	}
	for i := range all { // repeated items get the joined record, so that a filter selects all or none of them
		if item := &all[i]; item.Reason == reasonRepeated {
			first := v.sameMessage(item)
			item.Status, item.Sent, item.Time, item.MessageID = first.Status, first.Sent, first.Time, first.MessageID
		}
	}
	return v
}

// sameMessage returns the first item with the same message, or nil.
func (v variants) sameMessage(item *PlannedItem) *PlannedItem {
	for _, f := range v.distinct[eventKey{item.EventSource, item.DedupeKey}] {
		if first := &v.all[f]; first.BodyHash == item.BodyHash && first.Group == item.Group {
			return first
		}
	}
	return nil
}

// certainty decides between contradictory records of one message: the status with the
// greater number is used.
var certainty = map[Status]int{StatusPending: 0, StatusUnknown: 1, StatusInDoubt: 2, StatusDiscarded: 3, StatusDelivered: 4}

func (p *PlannedItem) join(other *PlannedItem) {
	// A pending item was never sent, so its record does not limit the time of the send.
	a, b := p.bounds(), other.bounds()
	if certainty[other.Status] > certainty[p.Status] {
		p.Status = other.Status
	}
	if other.MessageID != "" {
		p.MessageID = other.MessageID
	}
	switch {
	case a == nil:
		p.Sent = other.Sent
	case b != nil:
		if b.From.Before(a.From) { // a zero From, without a lower bound, is before all others
			p.Sent.From = b.From
		}
		p.Sent.To = later(a.To, b.To)
		if a.To.IsZero() || b.To.IsZero() { // an unknown end: sent any time until the plan is made
			p.Sent.To = time.Time{}
		}
	}
	p.Time = later(p.Time, other.Time)
}

func (p *PlannedItem) bounds() *Sent {
	if p.Status == StatusPending {
		return nil
	}
	return &p.Sent
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// judge skips a repeated item. If an event has different messages, the dedupe key belongs
// to one of them: the delivered message or, if no message was delivered, the first
// message. An item with any other message of the event becomes a conflict.
func (v variants) judge(i int, item *PlannedItem) {
	if item.Action == ActionDrift || item.Action == ActionSkip || item.DedupeKey == "" {
		return
	}
	firsts := v.distinct[eventKey{item.EventSource, item.DedupeKey}]
	owner := firsts[0]
	for _, f := range firsts {
		if v.all[f].Status == StatusDelivered {
			owner = f
			break
		}
	}
	same := v.all[owner].BodyHash == item.BodyHash && v.all[owner].Group == item.Group
	switch {
	case !same:
		item.Action, item.Reason = ActionConflict, "another message of the source has its dedupe key"
	case i != owner:
		item.Action, item.Reason = ActionSkip, reasonRepeated
	}
}
