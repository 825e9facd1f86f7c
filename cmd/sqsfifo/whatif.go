package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"text/tabwriter"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/timeline"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// whatIfFlags are the flags that ask for a comparison.
type whatIfFlags struct {
	OtherScope     bool          `help:"What if: compare with the other --scope."`
	Interval       time.Duration `placeholder:"TIME" help:"What if: compare with a deduplication interval of this time, 1s to 24h; that of SQS is 5m, and there is no setting for it."`
	ReplayAfter    time.Duration `placeholder:"TIME" help:"What if: compare with one more replay after this time, beyond those of --replay."`
	AttributesOnly bool          `help:"What if: compare with a producer whose events differ in attributes alone: dedupe_key, event_id and event_time are taken out of bodies that are objects and put into an attribute, and a deduplication_id is left out, so that the rest of the body decides."`
	RandomIDs      bool          `name:"random-ids" help:"What if: compare with a producer that puts a new ID or the time of the call into each body: no two bodies are equal, and a deduplication_id is left out."`
}

// The bounds of --interval.
const (
	leastInterval = time.Second
	mostInterval  = 24 * time.Hour
)

// whatIfs simulates the same messages under other conditions.
type whatIfs struct {
	fact timeline.WhatIf
	all  []*alternative
	own  int32 // number of the replay that is not part of the log, 0 for none
}

// alternative is one other condition.
type alternative struct {
	simulation *sqstest.Simulation // nil: no message is suppressed
	change     func(sqstest.TimedMessage) sqstest.TimedMessage
	interval   time.Duration // in place of that of SQS
	begin      time.Time
	replay     bool // takes the replay of its own
	counts     timeline.WhatIf
}

func (f *whatIfFlags) begin(c sqstest.Config, replays []time.Duration) (*whatIfs, error) {
	w := &whatIfs{fact: timeline.WhatIf{Name: "as it is"}}
	add := func(asked bool, c sqstest.Config, a alternative, name string) error {
		if !asked {
			return nil
		}
		var err error
		a.simulation, err = sqstest.NewSimulation(c)
		a.counts.Name = name
		w.all = append(w.all, &a)
		return err
	}
	switch {
	case f.Interval != 0 && (f.Interval < leastInterval || f.Interval > mostInterval):
		return nil, fmt.Errorf("--interval %s is not from %s to %s", f.Interval, leastInterval, mostInterval)
	case f.ReplayAfter < 0:
		return nil, fmt.Errorf("--replay-after %s is not above zero", f.ReplayAfter)
	}
	other := c
	other.DeduplicationScope = sqstest.ScopeMessageGroup
	if c.DeduplicationScope == sqstest.ScopeMessageGroup {
		other.DeduplicationScope = sqstest.ScopeQueue
	}
	content := c
	content.DisableContentBasedDeduplication = false
	if err := add(f.OtherScope, other, alternative{}, "the scope were "+string(other.DeduplicationScope)); err != nil {
		return nil, err
	}
	if err := add(f.Interval != 0, c, alternative{interval: f.Interval}, "the interval were "+f.Interval.String()); err != nil {
		return nil, err
	}
	if f.ReplayAfter > 0 {
		w.own = int32(len(replays)) + 1
	}
	if err := add(f.ReplayAfter > 0, c, alternative{replay: true}, "the log were sent again after "+f.ReplayAfter.String()); err != nil {
		return nil, err
	}
	if err := add(f.AttributesOnly, content, alternative{change: identityInAttributes}, "events differed in attributes alone"); err != nil {
		return nil, err
	}
	if f.RandomIDs {
		w.all = append(w.all, &alternative{counts: timeline.WhatIf{Name: "bodies had random IDs"}})
	}
	return w, nil
}

// replays returns those of the log and the one of --replay-after.
func (w *whatIfs) replays(of []time.Duration, after time.Duration) []time.Duration {
	if w.own == 0 {
		return of
	}
	return append(of[:len(of):len(of)], after)
}

// ownReplay reports whether the message is sent only in a what-if.
func (w *whatIfs) ownReplay(m message) bool { return w.own > 0 && m.replay == w.own }

// preparer prepares a message for the simulation and for each alternative.
func (w *whatIfs) preparer(s *sqstest.Simulation) preparer {
	return func(m sqstest.TimedMessage) (sqstest.PreparedMessage, []sqstest.PreparedMessage) {
		if len(w.all) == 0 {
			return s.Prepare(m), nil
		}
		alternatives := make([]sqstest.PreparedMessage, len(w.all))
		for i, a := range w.all {
			changed := m
			if a.change != nil {
				changed = a.change(m)
			}
			if a.simulation != nil {
				alternatives[i] = a.simulation.Prepare(changed)
			}
		}
		return s.Prepare(m), alternatives
	}
}

// add sends a message in each alternative. The fact is nil for one that was not sent.
func (w *whatIfs) add(m message, fact *sqstest.Outcome) error {
	if len(w.all) == 0 {
		return nil
	}
	if fact != nil {
		count(&w.fact, *fact, nil)
	}
	for i, a := range w.all {
		if fact == nil && !a.replay {
			continue
		}
		o := sqstest.Outcome{Verdict: sqstest.Delivered}
		if a.simulation != nil {
			p := m.alternatives[i]
			var err error
			if p.At, err = a.at(m.At); err != nil {
				return err
			}
			if o, err = a.simulation.SendPrepared(p); err != nil {
				return err
			}
		} else if fact != nil && fact.Verdict == sqstest.Refused {
			o = *fact
		}
		count(&a.counts, o, fact)
		if fact == nil && o.Verdict == sqstest.Delivered {
			a.counts.Doubled++
		}
	}
	return nil
}

func count(c *timeline.WhatIf, o sqstest.Outcome, fact *sqstest.Outcome) {
	c.Messages++
	switch o.Verdict {
	case sqstest.Delivered:
		c.Delivered++
	case sqstest.Suppressed:
		c.Suppressed++
	case sqstest.Refused:
		c.Refused++
	}
	if len(o.Lost) > 0 {
		c.Lost++
	}
	switch {
	case fact == nil:
	case fact.Verdict == sqstest.Delivered && o.Verdict == sqstest.Suppressed:
		c.Vanished++
	case fact.Verdict == sqstest.Suppressed && o.Verdict == sqstest.Delivered && len(fact.Lost) > 0:
		c.Saved++
	case fact.Verdict == sqstest.Suppressed && o.Verdict == sqstest.Delivered:
		c.Doubled++
	}
}

// mostStretched is how far apart the times of a simulation can be.
const mostStretched = 100 * 365 * 24 * time.Hour

// at is when a message is sent. Another interval is the same as that of SQS with all
// times stretched, to a nanosecond.
func (a *alternative) at(t time.Time) (time.Time, error) {
	if a.interval == 0 {
		return t, nil
	}
	if a.begin.IsZero() {
		a.begin = t
	}
	high, low := bits.Mul64(uint64(t.Sub(a.begin)), uint64(window.Interval))
	if high < uint64(a.interval) {
		if stretched, _ := bits.Div64(high, low, uint64(a.interval)); stretched <= uint64(mostStretched) {
			return a.begin.Add(time.Duration(stretched)), nil
		}
	}
	return time.Time{}, fmt.Errorf("--interval %s is too short for a log of %s", a.interval, t.Sub(a.begin).Round(time.Hour))
}

// counts are those of what happened and of each alternative, none without one.
func (w *whatIfs) counts() []timeline.WhatIf {
	if len(w.all) == 0 {
		return nil
	}
	out := []timeline.WhatIf{w.fact}
	for _, a := range w.all {
		out = append(out, a.counts)
	}
	return out
}

func (w *whatIfs) print(to io.Writer) error {
	if len(w.all) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "what if\tmessages\tdelivered\tsuppressed\tof them lost\trefused\twould vanish\twould be doubled\twould be saved")
	for i, c := range w.counts() {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d", c.Name, c.Messages, c.Delivered, c.Suppressed, c.Lost, c.Refused)
		if i == 0 {
			fmt.Fprintln(t, "\t-\t-\t-")
			continue
		}
		fmt.Fprintf(t, "\t%d\t%d\t%d\n", c.Vanished, c.Doubled, c.Saved)
	}
	return t.Flush()
}

// identity are the members of an envelope that make an event differ from others with
// the same payload.
var identity = []string{"dedupe_key", "event_id", "event_time"}

// mostAttributes is how many attributes SQS takes.
const mostAttributes = 10

// identityInAttributes moves the identity of an event from its body into an attribute.
func identityInAttributes(m sqstest.TimedMessage) sqstest.TimedMessage {
	m.DeduplicationID = ""
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(m.Body), &members) != nil || members == nil {
		return m
	}
	moved := map[string]json.RawMessage{}
	for _, name := range identity {
		if value, ok := members[name]; ok {
			moved[name] = value
			delete(members, name)
		}
	}
	if len(moved) == 0 {
		return m
	}
	rest, err := json.Marshal(members)
	if err != nil {
		return m
	}
	m.Body = string(rest)
	if text, err := json.Marshal(moved); err == nil && len(m.Attributes) < mostAttributes {
		attributes := maps.Clone(m.Attributes)
		if attributes == nil {
			attributes = map[string]string{}
		}
		attributes["event_identity"] = string(text)
		m.Attributes = attributes
	}
	return m
}
