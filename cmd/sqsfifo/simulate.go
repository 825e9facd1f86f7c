package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

type simulateCmd struct {
	Scope          string          `enum:"queue,messageGroup" default:"queue" placeholder:"SCOPE" help:"Where a deduplication ID has to be unique: queue or messageGroup (default ${default})."`
	NoContentBased bool            `help:"A queue without ContentBasedDeduplication: each line needs a deduplication_id."`
	JSON           bool            `name:"json" help:"Print one JSON object for each message."`
	Findings       bool            `help:"Print findings only."`
	AllowEmpty     bool            `help:"Accept a log without messages."`
	FailOn         []string        `enum:"lost,refused,collision,redelivered,none" default:"lost,refused,collision" placeholder:"FINDING" help:"Findings that make the exit code 1, or none (default ${default})."`
	Replay         []time.Duration `placeholder:"TIME" help:"Send the whole log once more after this time, as in 3m; may be repeated."`
	pictureFlags
	whatIfFlags
	File []string `arg:"" optional:"" help:"Logs; - or none is standard input."`
}

// Help is the manual of the command.
func (*simulateCmd) Help() string {
	return `Shows what a FIFO queue does with a log of messages: what it delivers, what it suppresses and because of which message, and where two events share a dedupe_key. Nothing waits: the times are those of the log.

A log has one JSON object on a line:

	{"at":"2025-12-04T12:00:00Z","group":"p32r29","body":{...},"attributes":{"k":"v"},"deduplication_id":"..."}

at, group and body are required; body is a string, or an object that stands for its canonical form. Lines of several files are merged by time. A log of more than 50,000 lines has to be sorted by time; it may be of any length.

Two other kinds of lines are read: what sqsfifo.ProvenanceWriter writes, and rows of an outbox with the members message and first_attempt (ms since 1970). Of these, messages that were refused or not sent are left out.

The exit code is 1 if what --fail-on names was found:

	lost         suppressed although it differs from the original
	refused      refused by SQS
	collision    has the dedupe_key of another event
	redelivered  a message of a --replay that is delivered once more

--html writes a page that shows the messages over time; it needs no network. --other-scope, --interval, --replay-after, --attributes-only and --random-ids each simulate the same messages once more, under another condition, and print the counts side by side; the exit code is not theirs.

Examples:

	sqsfifo simulate events.jsonl
	sqsfifo simulate events.jsonl --replay 3m,7m --findings --json
	sqsfifo simulate events.jsonl --html page.html --other-scope --interval 10m`
}

func (c *simulateCmd) run(_ context.Context, io stdio) (int, error) {
	for _, d := range c.Replay {
		if d <= 0 {
			return exitFailed, fmt.Errorf("--replay: %v is not above zero", d)
		}
	}
	config := sqstest.Config{DeduplicationScope: sqstest.DeduplicationScope(c.Scope), DisableContentBasedDeduplication: c.NoContentBased}
	simulation, err := sqstest.NewSimulation(config)
	if err != nil {
		return exitFailed, err
	}
	// What stays are tables without pointers, cheap to collect often: a heap of twice
	// their size would be the greater part of the memory.
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	whatIfs, err := c.whatIfFlags.begin(config, c.Replay)
	if err != nil {
		return exitFailed, err
	}
	picture, err := c.pictureFlags.begin(c.File)
	if err != nil {
		return exitFailed, err
	}
	defer picture.close()
	log, err := openLog(whatIfs.preparer(simulation), c.File, picture.stdin(io.in), whatIfs.replays(c.Replay, c.ReplayAfter))
	if err != nil {
		return exitFailed, err
	}
	defer log.close()

	out := bufio.NewWriterSize(io.out, 1<<16)
	r := &report{log: log, whatIfs: whatIfs, picture: picture, found: map[string]int{}, verdicts: map[sqstest.Verdict]int{}}
	show := r.table(out)
	if c.JSON {
		show = r.lines(out)
	}
	if err := r.run(simulation, show, c.Findings); err != nil {
		return exitFailed, err
	}
	if err := out.Flush(); err != nil {
		return exitFailed, err
	}
	if r.count == 0 && !c.AllowEmpty {
		return exitFailed, errors.New("the log is empty; --allow-empty accepts that")
	}
	r.summarize(io.err, len(c.Replay) > 0)
	if err := whatIfs.print(io.err); err != nil {
		return exitFailed, err
	}
	if err := picture.write(log.files, c.Scope, c.Replay, whatIfs.counts()); err != nil {
		return exitFailed, err
	}
	for _, name := range c.FailOn {
		if r.found[name] > 0 {
			return exitFindings, nil
		}
	}
	return exitFine, nil
}

// report counts outcomes and prints them, one by one.
type report struct {
	log      *eventLog
	whatIfs  *whatIfs
	picture  *picture
	places   recentPlaces
	count    int
	verdicts map[sqstest.Verdict]int
	found    map[string]int // by the names of --fail-on
}

// printer prints one message; with done it prints what is left.
type printer func(index int, m message, o sqstest.Outcome, done bool) error

func (r *report) run(s *sqstest.Simulation, show printer, findingsOnly bool) error {
	for {
		m, err := r.log.next()
		if errors.Is(err, io.EOF) {
			return show(0, message{}, sqstest.Outcome{}, true)
		}
		if err != nil {
			return err
		}
		if r.whatIfs.ownReplay(m) {
			if err := r.whatIfs.add(m, nil); err != nil {
				return fmt.Errorf("%s: %w", r.log.name(m.place), err)
			}
			continue
		}
		o, err := s.SendPrepared(m.PreparedMessage)
		if err == nil {
			err = r.whatIfs.add(m, &o)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.log.name(m.place), err)
		}
		r.picture.add(m, o)
		index := r.count
		r.count++
		r.places.add(m.place, m.At)
		if finding := r.judge(m, o); findingsOnly && !finding {
			continue
		}
		if err := show(index, m, o, false); err != nil {
			return err
		}
	}
}

// judge counts the outcome and reports whether it is a finding.
func (r *report) judge(m message, o sqstest.Outcome) bool {
	r.verdicts[o.Verdict]++
	finding := false
	note := func(name string, is bool) {
		if is {
			r.found[name]++
			finding = true
		}
	}
	note("lost", len(o.Lost) > 0)
	note("refused", o.Verdict == sqstest.Refused)
	note("collision", o.Collides >= 0)
	note("redelivered", m.replay > 0 && o.Verdict == sqstest.Delivered)
	return finding
}

func (r *report) summarize(w io.Writer, replayed bool) {
	fmt.Fprintf(w, "%d messages: %d delivered, %d suppressed (%d of them lost), %d refused, %d with the dedupe_key of another event",
		r.count, r.verdicts[sqstest.Delivered], r.verdicts[sqstest.Suppressed], r.found["lost"], r.found["refused"], r.found["collision"])
	if replayed {
		fmt.Fprintf(w, ", %d replayed and delivered again", r.found["redelivered"])
	}
	fmt.Fprintln(w)
}

// tableRows is how many rows share the widths of their columns.
const tableRows = 1000

func (r *report) table(w io.Writer) printer {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "line\tsent\tgroup\tdeduplication id\toutcome")
	rows := 0
	return func(_ int, m message, o sqstest.Outcome, done bool) error {
		if !done {
			id := o.DeduplicationID
			if len(id) > 12 {
				id = id[:12] + "…"
			}
			rows++
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.log.name(m.place), m.At.UTC().Format("2006-01-02T15:04:05.000Z"), m.GroupID, id, r.describe(o))
		}
		if done || rows%tableRows == 0 {
			return t.Flush()
		}
		return nil
	}
}

// describe is Outcome.String with the places of the messages.
func (r *report) describe(o sqstest.Outcome) string {
	var b strings.Builder
	b.WriteString(string(o.Verdict))
	if o.Of >= 0 {
		b.WriteString(", duplicate of " + r.log.name(r.places.of(o.Of)))
	}
	if len(o.Lost) > 0 {
		b.WriteString(", which has other " + strings.Join(o.Lost, " and "))
	}
	if o.Collides >= 0 {
		b.WriteString(", has the dedupe_key of " + r.log.name(r.places.of(o.Collides)) + " with another body")
	}
	if o.Err != nil {
		b.WriteString(": " + o.Err.Error())
	}
	return b.String()
}

// outcomeLine is the stable form of --json.
type outcomeLine struct {
	Index           int        `json:"index"`
	File            string     `json:"file"`
	Line            int        `json:"line"`
	Replay          int        `json:"replay,omitempty"`
	At              time.Time  `json:"at"`
	Group           string     `json:"group"`
	DeduplicationID string     `json:"deduplication_id,omitempty"`
	Verdict         string     `json:"verdict"`
	DuplicateOf     *int       `json:"duplicate_of,omitempty"`
	Until           *time.Time `json:"until,omitempty"`
	Lost            []string   `json:"lost,omitempty"`
	CollidesWith    *int       `json:"collides_with,omitempty"`
	Error           string     `json:"error,omitempty"`
}

func (r *report) lines(w io.Writer) printer {
	e := json.NewEncoder(w)
	return func(index int, m message, o sqstest.Outcome, done bool) error {
		if done {
			return nil
		}
		l := outcomeLine{
			Index: index, File: r.log.files[m.file], Line: int(m.line), Replay: int(m.replay), At: m.At.UTC(), Group: m.GroupID,
			DeduplicationID: o.DeduplicationID, Verdict: string(o.Verdict), Lost: o.Lost,
		}
		if o.Of >= 0 {
			until := o.Until.UTC()
			l.DuplicateOf, l.Until = &o.Of, &until
		}
		if o.Collides >= 0 {
			l.CollidesWith = &o.Collides
		}
		if o.Err != nil {
			l.Error = o.Err.Error()
		}
		return e.Encode(l)
	}
}
