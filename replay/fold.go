package replay

import "time"

// eventKey is what a dedupe key is unique in.
type eventKey struct{ source, key string }

// variants are, for each event, the first items of its different messages, by index.
type variants struct {
	all   []PlannedItem
	first map[eventKey][]int
}

// fold joins what all items of one message say, in the first of them, and lets the
// others be skipped. Items that have drifted take no part.
func fold(all []PlannedItem) variants {
	v := variants{all: all, first: make(map[eventKey][]int, len(all))}
next:
	for i := range all {
		item := &all[i]
		if item.Action == ActionDrift || item.DedupeKey == "" {
			continue
		}
		k := eventKey{item.EventSource, item.DedupeKey}
		for _, f := range v.first[k] {
			if all[f].BodyHash == item.BodyHash && all[f].Group == item.Group {
				all[f].join(item)
				item.Reason = ReasonRepeated
				continue next
			}
		}
		v.first[k] = append(v.first[k], i)
	}
	for i := range all { // the same for all, so that a filter takes all or none
		if item := &all[i]; item.Reason == ReasonRepeated {
			for _, f := range v.first[eventKey{item.EventSource, item.DedupeKey}] {
				if all[f].BodyHash == item.BodyHash && all[f].Group == item.Group {
					item.Status, item.Sent, item.Time, item.MessageID = all[f].Status, all[f].Sent, all[f].Time, all[f].MessageID
				}
			}
		}
	}
	return v
}

// certainty orders what two records say of one message: the greater one holds.
var certainty = [...]int{Pending: 0, Unknown: 1, InDoubt: 2, Discarded: 3, Delivered: 4}

func (p *PlannedItem) join(other *PlannedItem) {
	// Of Pending items the bounds say nothing.
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
		if b.From.Before(a.From) { // a zero one has no lower bound
			p.Sent.From = b.From
		}
		p.Sent.To = later(a.To, b.To)
		if a.To.IsZero() || b.To.IsZero() { // at any time until the plan is made
			p.Sent.To = time.Time{}
		}
	}
	p.Time = later(p.Time, other.Time)
}

func (p *PlannedItem) bounds() *Sent {
	if p.Status == Pending {
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

// judge refuses an item that repeats another, or whose event has another message: the
// one that was delivered, or else the first one.
func (v variants) judge(i int, item *PlannedItem) {
	if item.Action == ActionDrift || item.Action == ActionSkip || item.DedupeKey == "" {
		return
	}
	firsts := v.first[eventKey{item.EventSource, item.DedupeKey}]
	owner := firsts[0]
	for _, f := range firsts {
		if v.all[f].Status == Delivered {
			owner = f
			break
		}
	}
	same := v.all[owner].BodyHash == item.BodyHash && v.all[owner].Group == item.Group
	switch {
	case !same:
		item.Action, item.Reason = ActionConflict, "another message of the source has its dedupe key"
	case i != owner:
		item.Action, item.Reason = ActionSkip, ReasonRepeated
	}
}
