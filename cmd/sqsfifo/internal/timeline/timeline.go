// Package timeline makes the page of "sqsfifo simulate --html": what became of each
// message of a log, by message group and time.
//
// Problem: of millions of messages a few vanish or are doubled, and a table of outcomes
// does not show which, when and because of what.
//
// Guarantee: the page is one file, see package page. It has every message of a log of up
// to [MaxMessages], and of a longer one the counts and the findings. What a [Recorder]
// holds has bounds: beyond MaxMessages it follows the deduplication interval, and not the
// length of the log. Of bodies and attributes the page has those of findings, shortened,
// and only what [Recorder.SetTexts] was given.
//
// Limits: times are shown in milliseconds. Of a longer log there are at most
// [MaxFindings] of each kind, and of any at most [MaxTexts] of each kind with their texts.
// Beyond [MaxGroups] groups share a lane.
package timeline

import (
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// The bounds of a page.
const (
	MaxMessages = 1_000_000
	MaxFindings = 5_000
	MaxTexts    = 1_000
	MaxGroups   = 100_000
)

// Place is a line of a file. Replay is zero in the log itself.
type Place struct {
	File, Replay, Line int32
}

// Message is one message of the log. Group may be empty where SQS refused it.
type Message struct {
	At      time.Time
	Group   string
	Place   Place
	Outcome sqstest.Outcome
}

// Kind is what became of a message, the worst first: a message that is of several kinds
// counts under the first.
type Kind int

// The kinds.
const (
	Lost      Kind = iota // suppressed, although it differs from the original
	Bodies                // has the dedupe_key of a message with another body
	Again                 // of a replay, and delivered once more
	Refused               // by SQS
	Duplicate             // suppressed, and equal to the original
	Delivered

	kindCount
)

// isFinding reports whether the page lists messages of the kind.
func (k Kind) isFinding() bool { return k < Duplicate }

// kindOf returns the kind of a message.
func kindOf(m Message) Kind {
	switch {
	case len(m.Outcome.Lost) > 0:
		return Lost
	case m.Outcome.Collides >= 0:
		return Bodies
	case m.Outcome.Verdict == sqstest.Refused:
		return Refused
	case m.Outcome.Verdict == sqstest.Suppressed:
		return Duplicate
	case m.Place.Replay > 0:
		return Again
	}
	return Delivered
}

// Options say what is shown around the messages.
type Options struct {
	Files   []string
	Scope   string
	Replays []time.Duration
	WhatIfs []WhatIf
	Texts   bool // say that there are none if false
}

// WhatIf is what becomes of the same messages under another condition. The first of a
// list is what happened.
type WhatIf struct {
	Name string `json:"name"`

	Messages   int `json:"messages"`
	Delivered  int `json:"delivered"`
	Suppressed int `json:"suppressed"`
	Lost       int `json:"lost"` // of those that were suppressed
	Refused    int `json:"refused"`

	// Vanished were delivered in fact and would be suppressed. Doubled would be
	// delivered although they were suppressed as equal to their original, or are sent
	// only then. Saved were lost in fact and would be delivered.
	Vanished int `json:"vanished"`
	Doubled  int `json:"doubled"`
	Saved    int `json:"saved"`
}

// Recorder takes the messages in the order of the simulation and writes the page. Create
// one with [NewRecorder].
type Recorder struct {
	count       int
	first, last int64 // ms since 1970
	kinds       [kindCount]int
	groups      groups
	all         *columns // nil beyond MaxMessages
	kept        []row    // findings, for when all is nil, by number
	keptOf      [kindCount]int
	causes      map[cause]int
	recent      recent
	bins        bins
	texts       map[int]*text
	textsOf     [kindCount]int
	most        int // MaxMessages, except in tests
}

// NewRecorder returns a recorder without messages.
func NewRecorder() *Recorder {
	return &Recorder{groups: newGroups(), all: newColumns(), causes: map[cause]int{}, texts: map[int]*text{}, most: MaxMessages}
}

// cause is why a finding is one, as the list groups them.
type cause struct {
	Kind Kind
	Text string
}

// row is a message as the page has it.
type row struct {
	number     int
	at         int64
	group      uint32
	flags      byte
	id, errors string
	of, other  int
	place      Place
}

// The bits of flags.
const (
	flagSuppressed = 1 << iota
	flagRefused
	flagAttributes // lost
	flagGroup
	flagBody
	flagCollides
	flagReplayed
	flagNamed // its ID is not a hash
)

// Add takes the next message.
func (r *Recorder) Add(m Message) {
	at := m.At.UnixMilli()
	if r.count == 0 {
		r.first = at
		r.bins.start = at
	}
	r.last = at
	kind := kindOf(m)
	number := r.count
	r.count++
	r.kinds[kind]++
	group := r.groups.of(m.Group)
	r.groups.counts[group][kind]++
	r.bins.add(at, kind)
	out := row{number: number, at: at, group: group, flags: flagsOf(m), of: m.Outcome.Of, other: m.Outcome.Collides, place: m.Place}
	if m.Outcome.Err != nil {
		out.errors = m.Outcome.Err.Error()
	}
	if m.Outcome.Verdict != sqstest.Refused {
		out.id = m.Outcome.DeduplicationID
		if !isHash(out.id) {
			out.flags |= flagNamed
		}
	}
	if r.all != nil {
		if r.count > r.most {
			r.all = nil
		} else {
			r.all.add(out)
		}
	}
	if kind.isFinding() {
		r.find(kind, m, out)
	}
	r.recent.add(out)
}

func flagsOf(m Message) (flags byte) {
	switch m.Outcome.Verdict {
	case sqstest.Suppressed:
		flags |= flagSuppressed
	case sqstest.Refused:
		flags |= flagRefused
	}
	for _, what := range m.Outcome.Lost {
		switch what {
		case "attributes":
			flags |= flagAttributes
		case "group":
			flags |= flagGroup
		case "body":
			flags |= flagBody
		}
	}
	if m.Outcome.Collides >= 0 {
		flags |= flagCollides
	}
	if m.Place.Replay > 0 {
		flags |= flagReplayed
	}
	return flags
}

// find keeps a finding, and the message that it names.
func (r *Recorder) find(kind Kind, m Message, found row) {
	r.causes[causeOf(kind, m)]++
	if r.keptOf[kind] < MaxFindings {
		r.keptOf[kind]++
		r.kept = append(r.kept, found)
		for _, number := range []int{found.of, found.other} {
			if was, ok := r.recent.of(number); ok {
				named := row{number: number, at: was.at, group: was.group, of: -1, other: -1, place: was.place}
				r.kept = append(r.kept, named)
			}
		}
	}
	if kind == Again || r.textsOf[kind] == MaxTexts {
		return
	}
	r.textsOf[kind]++
	t := &text{own: m.Place, with: -1}
	if kind != Refused {
		t.with = m.Outcome.Of
		if kind == Bodies {
			t.with = m.Outcome.Collides
		}
		if was, ok := r.recent.of(t.with); ok {
			t.other = was.place
		}
	}
	r.texts[found.number] = t
}
