// Package timeline creates the page of "sqsfifo simulate --html": the outcome of each
// message of a log, by message group and time.
//
// Problem: among millions of messages, a few are lost or doubled. A table of outcomes does
// not show these messages, their times and the causes.
//
// Guarantee: the page is one file; see package page. A finding is a message with a bad
// outcome: lost, delivered again, refused, or stored with the dedupe key of an earlier
// message but a different body. The page of a log with at most [MaxMessages] messages shows
// every message. For a longer log, the page shows the counts of all messages (by kind, group
// and time), and the findings with their related messages. The memory of a [Recorder] then
// depends on the number of messages within a deduplication interval, not on the length of the
// log. The page shows bodies and attributes of findings only, shortened, and only if the
// caller passes these messages in [Options].Texts.
//
// Limits: times are shown in milliseconds. For a log of more than MaxMessages messages, the
// page shows at most [MaxFindings] findings of each kind. Bodies and attributes are shown of
// at most [MaxTexts] findings of each kind. The page draws each message group in a separate
// row; groups beyond [MaxGroups] share one row.
package timeline

import (
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/recent"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Limits of a page.
const (
	MaxMessages = 1_000_000
	MaxFindings = 5_000
	MaxTexts    = 1_000
	MaxGroups   = 100_000
)

// Place is a message's line in a log file. Replay is 0 for the message in the log, and n
// for its copy in replay number n (flag --replay).
type Place struct {
	File, Replay, Line int32
}

// Message is one message of the log. Group may be empty if SQS refused the message.
type Message struct {
	At      time.Time
	Group   string
	Place   Place
	Outcome sqstest.Outcome
}

// Kind is the kind of a message's outcome. Smaller kinds are worse. If several kinds fit,
// a message has the smallest.
type Kind int

// These are the kinds, the worst first.
const (
	Lost      Kind = iota // suppressed although it differs from the original
	Bodies                // same dedupe_key as an earlier message, but a different body
	Again                 // delivered once more, in a replay of the log
	Refused               // refused by SQS
	Duplicate             // suppressed, and equal to the original
	Delivered

	kindCount
)

// isFinding reports whether messages of the kind are in the page's list of findings.
func (k Kind) isFinding() bool { return k < Duplicate }

// KindOf returns the kind of a message with outcome o. The parameter `replayed` is true if
// the message was sent in a replay, which sends the whole log once more (flag --replay).
func KindOf(o sqstest.Outcome, replayed bool) Kind {
	switch {
	case len(o.Lost) > 0:
		return Lost
	case o.Collides >= 0:
		return Bodies
	case o.Result == sqstest.ResultRefused:
		return Refused
	case o.Result == sqstest.ResultSuppressed:
		return Duplicate
	case replayed:
		return Again
	}
	return Delivered
}

// Options describe the input of the page.
type Options struct {
	Files   []string
	Scope   string
	Replays []time.Duration
	// Texts has the messages in the log lines from [Recorder.Wanted], except unreadable
	// messages. The page shows their bodies, shortened, and the attributes that differ from
	// the related message. If Texts is nil, the page says that it has no texts.
	Texts map[Place]sqstest.TimedMessage
}

// Recorder records messages in simulation order and writes the page. Create it with
// [NewRecorder].
type Recorder struct {
	count       int
	first, last int64 // ms since 1970
	kinds       [kindCount]int
	groups      groups
	all         *columns // all messages; nil for a log of more than MaxMessages messages
	// kept has at most MaxFindings findings of each kind, and their related messages. The
	// page shows only these messages if the field `all` is nil.
	kept        []row
	keptOf      [kindCount]int
	causes      map[cause]int
	recent      recent.Messages[recentMessage]
	bins        bins
	texts       map[int]text
	textsOf     [kindCount]int
	maxMessages int // maximum length of the slice Recorder.all: MaxMessages, or less in tests
}

// NewRecorder returns a recorder without messages.
func NewRecorder() *Recorder {
	return &Recorder{groups: newGroups(), all: newColumns(), causes: map[cause]int{}, texts: map[int]text{}, maxMessages: MaxMessages}
}

// cause is the reason of a finding; the list groups findings by cause.
type cause struct {
	Kind Kind
	Text string
}

// recentMessage is a message of the last minutes. If SQS suppresses a later message as a
// duplicate of this one, or a later message has the same dedupe key but a different body,
// the later message may be a finding. The page then shows both messages.
type recentMessage struct {
	at    int64
	group uint32
	place Place
}

// row is one message in the page's data.
type row struct {
	number     int // position in the simulation, from 1; each replay of a message counts, too
	at         int64
	group      uint32
	flags      byte
	id, errors string
	original   int // for a suppressed message, number of the earlier, stored message; otherwise 0
	collision  int // number of an earlier message with this dedupe key but a different body; 0 if none
	place      Place
}

// The bits of row.flags.
const (
	flagSuppressed = 1 << iota
	flagRefused
	flagAttributes // the suppressed message had other attributes
	flagGroup
	flagBody
	flagCollides
	flagReplayed
	flagOtherID // the deduplication ID is not a SHA-256, so the page shows its text
)

// Add records the next message.
func (r *Recorder) Add(m Message) {
	at := m.At.UnixMilli()
	if r.count == 0 {
		r.first = at
		r.bins.start = at
	}
	r.last = at
	kind := KindOf(m.Outcome, m.Place.Replay > 0)
	r.count++
	r.kinds[kind]++
	group := r.groups.of(m.Group)
	r.groups.counts[group][kind]++
	r.bins.add(at, kind)
	out := row{number: r.count, at: at, group: group, flags: flagsOf(m), original: m.Outcome.Of + 1, collision: m.Outcome.Collides + 1, place: m.Place}
	if m.Outcome.Err != nil {
		out.errors = m.Outcome.Err.Error()
	}
	if m.Outcome.Result != sqstest.ResultRefused {
		out.id = m.Outcome.DeduplicationID
		if !isHash(out.id) {
			out.flags |= flagOtherID
		}
	}
	if r.all != nil {
		if r.count > r.maxMessages {
			r.all = nil
		} else {
			r.all.add(out)
		}
	}
	if kind.isFinding() {
		r.addFinding(kind, m, out)
	}
	r.recent.Add(m.At, recentMessage{at, group, m.Place})
}

func flagsOf(m Message) (flags byte) {
	switch m.Outcome.Result {
	case sqstest.ResultSuppressed:
		flags |= flagSuppressed
	case sqstest.ResultRefused:
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

// addFinding stores the rows of a finding and of its related messages, for the first
// MaxFindings findings of each kind. For the first MaxTexts findings of each kind except
// [Again], addFinding also stores the log lines that [Recorder.Wanted] returns.
func (r *Recorder) addFinding(kind Kind, m Message, found row) {
	r.causes[causeOf(kind, m)]++
	if r.keptOf[kind] < MaxFindings {
		r.keptOf[kind]++
		r.kept = append(r.kept, found)
		for _, number := range []int{found.original, found.collision} {
			if was, ok := r.recent.Of(number); ok {
				named := row{number: number, at: was.at, group: was.group, place: was.place}
				r.kept = append(r.kept, named)
			}
		}
	}
	if kind == Again || r.textsOf[kind] == MaxTexts {
		return
	}
	r.textsOf[kind]++
	t := text{finding: lineOf(m.Place)}
	if kind != Refused {
		t.relatedNumber = found.original
		if kind == Bodies {
			t.relatedNumber = found.collision
		}
		if was, ok := r.recent.Of(t.relatedNumber); ok {
			t.related = lineOf(was.place)
		}
	}
	r.texts[found.number] = t
}
