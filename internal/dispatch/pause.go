package dispatch

import (
	"slices"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// Pause describes why the items of a group are not sent: an earlier item of the group
// failed. A Pause is immutable and contains no message or error.
type Pause struct {
	// Key is the key of the failed item. The pause does not stop a resend with this key.
	Key  string
	ID   [16]byte // event ID of the failed item
	Fate attempt.Fate
	Code string // error code of SQS, "" without a code

	// Since is the time of the failure. The pause ends at the time Until, or, if Until is
	// zero, only by a call of Resume or by a resend of the failed event.
	Since, Until time.Time

	// SameCall limits the pause to items with the same [Call] as the failed item. Other
	// items of the group are sent as usual.
	SameCall bool
}

// pause pauses the group of a failed item if the policy demands it. A group has a pause
// for each failed event. These events must be resent in the order of their failures.
func (d *Dispatcher[M]) pause(it *Item[M], fate attempt.Fate, code string, pauseEnd, now time.Time) {
	unproven := fate == attempt.FateInDoubt || fate == attempt.FateAltered
	switch d.options.Policy {
	case PolicyPauseInDoubt:
		if !unproven || it.wasOvertaken() {
			return
		}
	case PolicyPauseOnFailure:
		if fate == attempt.FateStored || !unproven && it.attempts == 0 {
			return
		}
		pauseEnd = time.Time{}
	case PolicyNeverPause:
		return
	}
	if !pauseEnd.IsZero() && !pauseEnd.After(now) {
		return
	}
	// This item was never sent, because the group was already paused. Only the pause for the
	// earlier failure is needed.
	if it.Outcome.Reason == ReasonPaused && it.attempts == 0 {
		return
	}
	p := &Pause{Key: strings.Clone(it.Key), ID: it.ID, Fate: fate, Code: code, Since: now, Until: pauseEnd}
	d.pauseOf(it.Group, now)
	pauses := d.pauses[it.Group]
	if i := slices.IndexFunc(pauses, func(p *Pause) bool { return p.Key == it.Key }); i >= 0 {
		pauses[i] = p
	} else if len(pauses) > 0 {
		d.pauses[it.Group] = append(pauses, p)
	} else {
		d.pauses[strings.Clone(it.Group)] = []*Pause{p}
	}
	d.paused++
	d.sender.Paused(it.Group, p)
	d.setMinute()
}

// endPause is called when SQS has stored an item. If an earlier item with the same event
// failed and paused the group, endPause ends this pause.
func (d *Dispatcher[M]) endPause(it *Item[M]) {
	if pauses := d.pauses[it.Group]; len(pauses) > 0 {
		d.setPauses(it.Group, slices.DeleteFunc(pauses, func(p *Pause) bool { return p.Key == it.Key }))
	}
}

func (d *Dispatcher[M]) setPauses(group string, pauses []*Pause) {
	if len(pauses) == 0 {
		delete(d.pauses, group)
	} else {
		d.pauses[group] = pauses
	}
}

// pauseOf returns the first pause of a group, or nil if the group is not paused. If the
// first pause is over, pauseOf removes all pauses of the group that are over.
func (d *Dispatcher[M]) pauseOf(group string, now time.Time) *Pause {
	pauses := d.pauses[group]
	if len(pauses) > 0 && pauses[0].isOver(now) {
		pauses = slices.DeleteFunc(pauses, func(p *Pause) bool { return p.isOver(now) })
		d.setPauses(group, pauses)
	}
	if len(pauses) == 0 {
		return nil
	}
	return pauses[0]
}

func (p *Pause) isOver(now time.Time) bool { return !p.Until.IsZero() && !now.Before(p.Until) }

// endPauses removes pauses whose time Until has passed. If the first pause of a group is not
// over, endPauses keeps all pauses of this group (see pauseOf).
func (d *Dispatcher[M]) endPauses(now time.Time) {
	for group := range d.pauses {
		d.pauseOf(group, now)
	}
}

// oldestPause returns the age of the oldest pause, comparing the first pause of each
// group. The caller holds d.mu.
func (d *Dispatcher[M]) oldestPause(now time.Time) (age time.Duration) {
	for _, pauses := range d.pauses {
		age = max(age, now.Sub(pauses[0].Since))
	}
	return age
}

// Resume ends all pauses of a group.
func (d *Dispatcher[M]) Resume(group string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pauses, group)
}

// ResumeAll ends every pause and returns the number of groups that were paused.
func (d *Dispatcher[M]) ResumeAll() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endPauses(time.Now())
	n := len(d.pauses)
	clear(d.pauses)
	return n
}

// Pauses returns the first pause of each paused group. A group has several pauses if several
// items failed. The item of the first pause must then be resent first. The caller owns the
// map.
func (d *Dispatcher[M]) Pauses() map[string]Pause {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endPauses(time.Now())
	groups := make(map[string]Pause, len(d.pauses))
	for group, pauses := range d.pauses {
		groups[group] = *pauses[0]
	}
	return groups
}
