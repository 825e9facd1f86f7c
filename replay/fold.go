package replay

import "time"

// eventKey is a dedupe key with its scope.
type eventKey struct{ source, key string }

// variants finds different messages with the same dedupe key. The field `all` has the
// items. A message may have several items. For each key, the field `distinct` has one index
// into `all` per message: the index of the message's first item.
type variants struct {
	all      []PlannedItem
	distinct map[eventKey][]int
}

// joinRecords joins items of the same message (equal event, group and body hash). The first
// item gets the joined status and times of all these items. The later items are marked with
// reasonRepeated. Items without a dedupe key and items with ActionDrift are ignored.
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
	// Copy the joined values to the repeated items. The plan's filter compares statuses and
	// times, and must treat all items of a message alike.
	for i := range all {
		if item := &all[i]; item.Reason == reasonRepeated {
			first := v.sameMessage(item)
			item.Status, item.Sent, item.Time, item.MessageID = first.Status, first.Sent, first.Time, first.MessageID
		}
	}
	return v
}

// sameMessage returns the first item in v.all with the same event, group and body hash,
// or nil.
func (v variants) sameMessage(item *PlannedItem) *PlannedItem {
	for _, f := range v.distinct[eventKey{item.EventSource, item.DedupeKey}] {
		if first := &v.all[f]; first.BodyHash == item.BodyHash && first.Group == item.Group {
			return first
		}
	}
	return nil
}

// certainty decides between contradictory statuses of one message: the status with the
// greater number is used.
var certainty = map[Status]int{StatusPending: 0, StatusUnknown: 1, StatusInDoubt: 2, StatusDiscarded: 3, StatusDelivered: 4}

func (p *PlannedItem) join(other *PlannedItem) {
	// Join the time ranges in which SQS may have accepted the message.
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
		if b.From.Before(a.From) { // a zero From means no lower bound, and is before any other time
			p.Sent.From = b.From
		}
		p.Sent.To = later(a.To, b.To)
		// A zero end is unknown, and so is the end of the joined range.
		if a.To.IsZero() || b.To.IsZero() {
			p.Sent.To = time.Time{}
		}
	}
	p.Time = later(p.Time, other.Time)
}

func (p *PlannedItem) bounds() *SentBetween {
	if p.Status == StatusPending {
		return nil // never sent
	}
	return &p.Sent
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// skipOrConflict skips a repeated item. If an event has several different messages, only one
// of them owns the dedupe key: the first delivered message or, if no message was delivered,
// the first message. The items of the other messages become conflicts.
func (v variants) skipOrConflict(i int, item *PlannedItem) {
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
