package dispatch

import (
	"slices"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// Pause is why the items of a group are not sent: an earlier item of the group
// failed. It is not changed once made, and holds neither a message nor an error.
type Pause struct {
	Key  string   // of the item that failed: it may still be sent
	ID   [16]byte // of the event
	Fate attempt.Fate
	Code string // of SQS, "" where it gave none

	// Since is when the item failed; Until when the pause ends by itself, zero for
	// never.
	Since, Until time.Time

	// SameCall: only the later items of the same call are stopped.
	SameCall bool
}

// pause stops the group of an item that failed, if the policy says so. Several items
// of one request may fail: they may be sent again one after the other, in the order in
// which they failed.
func (d *Dispatcher[M]) pause(it *Item[M], fate attempt.Fate, code string, over, now time.Time) {
	unproven := fate == attempt.InDoubt || fate == attempt.Altered
	switch d.options.Policy {
	case PauseInDoubt:
		if !unproven {
			return
		}
	case PauseOnFailure:
		if fate == attempt.Stored || !unproven && it.attempts == 0 {
			return
		}
		over = time.Time{}
	case NeverPause:
		return
	}
	if !over.IsZero() && !over.After(now) {
		return
	}
	if it.Outcome.Reason == Paused && it.attempts == 0 {
		return // it has changed nothing
	}
	p := &Pause{Key: strings.Clone(it.Key), ID: it.ID, Fate: fate, Code: code, Since: now, Until: over}
	d.pauseOf(it.Group, now)
	pauses := d.pauses[it.Group]
	if i := indexOf(pauses, it.Key); i >= 0 {
		pauses[i] = p
	} else if len(pauses) > 0 {
		d.pauses[it.Group] = append(pauses, p)
	} else {
		d.pauses[strings.Clone(it.Group)] = []*Pause{p}
	}
	d.courier.Paused(it.Group, p)
	d.keep()
}

func indexOf(pauses []*Pause, key string) int {
	return slices.IndexFunc(pauses, func(p *Pause) bool { return p.Key == key })
}

// endPause ends the pause of a group whose failed item is stored.
func (d *Dispatcher[M]) endPause(it *Item[M]) {
	if len(d.pauses) == 0 {
		return
	}
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

// pauseOf returns the pause of a group, nil for none.
func (d *Dispatcher[M]) pauseOf(group string, now time.Time) *Pause {
	if len(d.pauses) == 0 {
		return nil
	}
	pauses := d.pauses[group]
	if len(pauses) == 0 {
		return nil
	}
	if pauses[0].isOver(now) {
		pauses = slices.DeleteFunc(pauses, func(p *Pause) bool { return p.isOver(now) })
		d.setPauses(group, pauses)
	}
	if len(pauses) == 0 {
		return nil
	}
	return pauses[0]
}

func (p *Pause) isOver(now time.Time) bool { return !p.Until.IsZero() && !now.Before(p.Until) }

// endPauses ends those whose doubt is over.
func (d *Dispatcher[M]) endPauses(now time.Time) {
	for group := range d.pauses {
		d.pauseOf(group, now)
	}
}

// Resume ends the pause of a group, if it is paused.
func (d *Dispatcher[M]) Resume(group string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pauses, group)
}

// ResumeAll ends every pause and returns how many there were.
func (d *Dispatcher[M]) ResumeAll() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endPauses(time.Now())
	n := len(d.pauses)
	clear(d.pauses)
	return n
}

// Pauses returns the paused groups. The map is the caller's.
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

// Paused returns the number of paused groups.
func (d *Dispatcher[M]) Paused() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endPauses(time.Now())
	return len(d.pauses)
}
