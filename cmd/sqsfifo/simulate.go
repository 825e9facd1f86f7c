package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

const simulateHelp = `usage: sqsfifo simulate [flags] [file ...]

Shows what a FIFO queue does with a log of messages: what it delivers, what it
suppresses and because of which message, and where two events share a dedupe_key.
Nothing waits: the times are those of the log.

A log has one JSON object on a line; "-" or no file is standard input:
  {"at":"2025-12-04T12:00:00Z","group":"p32r29","body":{...},"attributes":{"k":"v"},"deduplication_id":"..."}
at, group and body are required; body is a string, or an object that stands for its
canonical form. Lines of several files are sorted by time.

Exits with 1 if a message was lost (suppressed although it differs from the
original), refused, or has the dedupe_key of another event.
`

// durations is a flag that may be given more than once.
type durations []time.Duration

func (d *durations) String() string { return fmt.Sprint([]time.Duration(*d)) }

func (d *durations) Set(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		v, err := time.ParseDuration(part)
		if err != nil {
			return err
		}
		if v <= 0 {
			return fmt.Errorf("%s is not above zero", part)
		}
		*d = append(*d, v)
	}
	return nil
}

func simulate(_ context.Context, args []string, io stdio) (int, error) {
	flags := flag.NewFlagSet("simulate", flag.ContinueOnError)
	scope := flags.String("scope", string(sqstest.ScopeQueue), `the queue's DeduplicationScope, "queue" or "messageGroup"`)
	asJSON := flags.Bool("json", false, "print one JSON object for each message")
	var replays durations
	flags.Var(&replays, "replay", "send the whole log once more after this `time`, as in 3m; may be repeated")
	if err := parse(flags, args, simulateHelp, io); err != nil {
		return exitFailed, err
	}
	messages, err := readLogs(flags.Args(), io.in)
	if err != nil {
		return exitFailed, err
	}
	messages = withReplays(messages, replays)
	timed := make([]sqstest.TimedMessage, len(messages))
	for i, m := range messages {
		timed[i] = m.TimedMessage
	}
	outcomes, err := sqstest.Simulate(sqstest.Config{DeduplicationScope: sqstest.DeduplicationScope(*scope)}, timed)
	if err != nil {
		return exitFailed, err
	}

	show := table
	if *asJSON {
		show = lines
	}
	if err := show(io.out, messages, outcomes); err != nil {
		return exitFailed, err
	}
	return summarize(io.err, outcomes), nil
}

// withReplays returns the log and its replays, sorted by time.
func withReplays(log []message, after []time.Duration) []message {
	out := slices.Clone(log)
	for _, d := range after {
		for _, m := range log {
			m.At = m.At.Add(d)
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b message) int { return a.At.Compare(b.At) })
	return out
}

func summarize(w io.Writer, outcomes []sqstest.Outcome) int {
	count := map[sqstest.Verdict]int{}
	lost, collisions := 0, 0
	for _, o := range outcomes {
		count[o.Verdict]++
		if len(o.Lost) > 0 {
			lost++
		}
		if o.Collides >= 0 {
			collisions++
		}
	}
	fmt.Fprintf(w, "%d messages: %d delivered, %d suppressed (%d of them lost), %d refused, %d with the dedupe_key of another event\n",
		len(outcomes), count[sqstest.Delivered], count[sqstest.Suppressed], lost, count[sqstest.Refused], collisions)
	if lost+collisions+count[sqstest.Refused] > 0 {
		return exitFindings
	}
	return exitFine
}

func table(w io.Writer, messages []message, outcomes []sqstest.Outcome) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "#\tsent\tgroup\tdeduplication id\toutcome")
	for i, o := range outcomes {
		id := o.DeduplicationID
		if len(id) > 12 {
			id = id[:12] + "…"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\n", i, messages[i].At.UTC().Format(time.RFC3339), messages[i].GroupID, id, o)
	}
	return t.Flush()
}

// outcomeLine is the stable form of --json.
type outcomeLine struct {
	Index           int        `json:"index"`
	File            string     `json:"file"`
	Line            int        `json:"line"`
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

func lines(w io.Writer, messages []message, outcomes []sqstest.Outcome) error {
	e := json.NewEncoder(w)
	for i, o := range outcomes {
		m := messages[i]
		l := outcomeLine{
			Index: i, File: m.file, Line: m.line, At: m.At.UTC(), Group: m.GroupID,
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
		if err := e.Encode(l); err != nil {
			return err
		}
	}
	return nil
}
