package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/input"
	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/recent"
	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/timeline"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

type simulateCmd struct {
	Scope          string          `enum:"queue,messageGroup" default:"queue" placeholder:"SCOPE" help:"Where a deduplication ID has to be unique: queue or messageGroup (default ${default})."`
	NoContentBased bool            `help:"A queue without ContentBasedDeduplication: each line needs a deduplication_id."`
	Key            string          `placeholder:"TEMPLATE" help:"What identifies an event in its body, as in /id or '{/type}|{/id}' (default: the member dedupe_key)."`
	JSON           bool            `name:"json" help:"Print one JSON object for each message."`
	Findings       bool            `help:"Print findings only."`
	AllowEmpty     bool            `help:"Accept a log without messages."`
	FailOn         []string        `enum:"lost,refused,collision,redelivered,none" default:"lost,refused,collision" placeholder:"FINDING" help:"Findings that make the exit code 1, or none (default ${default})."`
	Replay         []time.Duration `placeholder:"TIME" help:"Send the whole log once more after this time, as in 3m; may be repeated."`
	pictureFlags
	File []string `arg:"" optional:"" help:"Logs; - or none is standard input."`
}

func (*simulateCmd) Help() string {
	return `Shows what a FIFO queue does with a log of messages: what it delivers, what it suppresses and because of which message, and where two events share a dedupe_key. Nothing waits: the times are those of the log.

A log has one JSON object on a line:

	{"at":"2025-12-04T12:00:00Z","group":"p32r29","body":{...},"attributes":{"k":"v"},"deduplication_id":"..."}

at, group and body are required; body is a string, or an object that stands for its canonical form. The names of the SQS API are understood as well; "sqsfifo help logs" has a line of each kind. Lines of several files are merged by time. A log of more than 50,000 lines has to be sorted by time; it may be of any length.

Bodies without the member dedupe_key need --key, which names the values that identify an event ("sqsfifo help templates"): without it, one event with two bodies, such as two clock readings, looks like two events.

A line may also be a record written by sqsfifo.ProvenanceWriter. Records with the outcome not_stored or altered are left out.

Messages are numbered from 1 by time, here and in the page of --html. The summary counts each message once, under the worst of its findings.

The exit code is 1 if a message has one of the findings that --fail-on names:

	lost         suppressed although it differs from the original
	refused      refused by SQS
	collision    has the dedupe_key of another event
	redelivered  a message of a --replay that is delivered once more

--html writes a page that shows the messages over time; it needs no network.

Examples:

	sqsfifo simulate events.jsonl
	sqsfifo simulate events.jsonl --replay 3m,7m --findings --json
	sqsfifo simulate events.jsonl --key /order/id --html page.html`
}

func (c *simulateCmd) run(_ context.Context, io stdio) error {
	for _, d := range c.Replay {
		if d <= 0 {
			return fmt.Errorf("--replay: %v is not above zero", d)
		}
	}
	config := sqstest.Config{DeduplicationScope: sqstest.DeduplicationScope(c.Scope), DisableContentBasedDeduplication: c.NoContentBased}
	simulation, err := sqstest.NewSimulation(config)
	if err != nil {
		return err
	}
	// More frequent collections save memory and cost little, because most of the heap has
	// no pointers.
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	picture, err := c.pictureFlags.begin(c.File)
	if err != nil {
		return err
	}
	defer picture.close()
	prepare, err := c.preparer(simulation)
	if err != nil {
		return err
	}
	log, err := openLog(prepare, c.File, picture.stdin(io.in), c.Replay)
	if err != nil {
		return err
	}
	defer log.close()

	out := bufio.NewWriterSize(io.out, 1<<16)
	r := &report{log: log, picture: picture, found: map[string]int{}, kinds: map[timeline.Kind]int{}}
	show := r.table(out)
	if c.JSON {
		show = r.lines(out)
	}
	if err := r.run(simulation, show, c.Findings); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if r.count == 0 && !c.AllowEmpty {
		return errors.New("the log is empty; --allow-empty accepts that")
	}
	r.summarize(io.err)
	if err := picture.write(log.files, c.Scope, c.Replay); err != nil {
		return err
	}
	return findingsIf(slices.ContainsFunc(c.FailOn, func(name string) bool { return r.found[name] > 0 }))
}

// preparer returns a function that gives each message the dedupe key of --key.
func (c *simulateCmd) preparer(s *sqstest.Simulation) (preparer, error) {
	if c.Key == "" {
		return func(m sqstest.TimedMessage) message { return message{PreparedMessage: s.Prepare(m)} }, nil
	}
	key, err := input.ParseKey(c.Key)
	if err != nil {
		return nil, fmt.Errorf("--key: %w", err)
	}
	return func(m sqstest.TimedMessage) message {
		var err error
		m.DedupeKey, err = key.Of(m.Body)
		return message{PreparedMessage: s.Prepare(m), unkeyed: err != nil}
	}, nil
}

// report counts the outcomes of the messages, and passes each outcome to a printer.
type report struct {
	log     *eventLog
	picture *picture
	places  recent.Messages[place]
	count   int
	kinds   map[timeline.Kind]int
	unkeyed int
	found   map[string]int // findings by name: lost, refused, collision or redelivered
}

// printer prints one message and its outcome. The parameter `number` is the message's number
// in the log, from 1. After the last message, a call with done = true prints the remaining
// rows.
type printer func(number int, m message, o sqstest.Outcome, done bool) error

func (r *report) run(s *sqstest.Simulation, show printer, findingsOnly bool) error {
	for {
		m, err := r.log.next()
		if errors.Is(err, io.EOF) {
			return show(0, message{}, sqstest.Outcome{}, true)
		}
		if err != nil {
			return err
		}
		o, err := s.SendPrepared(m.PreparedMessage)
		if err != nil {
			return fmt.Errorf("%s: %w", r.log.name(m.place), err)
		}
		r.picture.add(m, o)
		r.count++
		if m.unkeyed {
			r.unkeyed++
		}
		r.places.Add(m.At, m.place)
		if finding := r.judge(m, o); findingsOnly && !finding {
			continue
		}
		if err := show(r.count, m, o, false); err != nil {
			return err
		}
	}
}

// judge counts the outcome of a message. It reports whether the outcome is a finding: lost,
// refused, collision or redelivered.
func (r *report) judge(m message, o sqstest.Outcome) bool {
	r.kinds[timeline.KindOf(o, m.replay > 0)]++
	finding := false
	note := func(name string, is bool) {
		if is {
			r.found[name]++
			finding = true
		}
	}
	note("lost", len(o.Lost) > 0)
	note("refused", o.Result == sqstest.ResultRefused)
	note("collision", o.Collides >= 0)
	note("redelivered", m.replay > 0 && o.Result == sqstest.ResultDelivered)
	return finding
}

// summarize prints the number of messages of each kind, worst first.
func (r *report) summarize(w io.Writer) {
	k := r.kinds
	if r.unkeyed > 0 {
		fmt.Fprintf(w, "%s without the --key, of which only equal bodies are compared\n", counted(r.unkeyed, "message"))
	}
	fmt.Fprintf(w, "%s: %d LOST, %d with one key and two bodies, %d delivered again, %d refused, %s suppressed, %d delivered once\n",
		counted(r.count, "message"), k[timeline.Lost], k[timeline.Bodies], k[timeline.Again], k[timeline.Refused], counted(k[timeline.Duplicate], "duplicate"), k[timeline.Delivered])
}

// tableRows is the number of rows that the table prints at once, with common column widths.
const tableRows = 1000

func (r *report) table(w io.Writer) printer {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "#\tline\tsent\tgroup\tdeduplication id\toutcome")
	rows := 0
	return func(number int, m message, o sqstest.Outcome, done bool) error {
		if !done {
			id := o.DeduplicationID
			if len(id) > 12 {
				id = id[:12] + "…"
			}
			rows++
			fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\n", number, r.log.name(m.place), m.At.UTC().Format("2006-01-02T15:04:05.000Z"), m.GroupID, id, r.describe(o))
		}
		if done || rows%tableRows == 0 {
			return t.Flush()
		}
		return nil
	}
}

// describe returns an outcome as text, like Outcome.String. It names a related message,
// such as the original of a duplicate, by number, file and line instead of by index.
func (r *report) describe(o sqstest.Outcome) string {
	var b strings.Builder
	b.WriteString(string(o.Result))
	if o.Of >= 0 {
		b.WriteString(", duplicate of " + r.reference(o.Of))
	}
	if len(o.Lost) > 0 {
		b.WriteString(", which has other " + strings.Join(o.Lost, " and "))
	}
	if o.Collides >= 0 {
		b.WriteString(", has the dedupe_key of " + r.reference(o.Collides) + " with another body")
	}
	if o.Err != nil {
		b.WriteString(": " + o.Err.Error())
	}
	return b.String()
}

// reference returns the number, file and line of the message with this index in the
// simulation.
func (r *report) reference(index int) string {
	at, _ := r.places.Of(index + 1)
	return fmt.Sprintf("#%d (%s)", index+1, r.log.name(at))
}

// outcomeLine is one line of --json output. Member names are stable.
type outcomeLine struct {
	Number          int        `json:"number"` // from 1
	File            string     `json:"file"`
	Line            int        `json:"line"`
	Replay          int        `json:"replay,omitempty"`
	At              time.Time  `json:"at"`
	Group           string     `json:"group"`
	DeduplicationID string     `json:"deduplication_id,omitempty"`
	Result          string     `json:"result"`
	DuplicateOf     int        `json:"duplicate_of,omitempty"` // number of the original
	Until           *time.Time `json:"until,omitempty"`
	Lost            []string   `json:"lost,omitempty"`
	CollidesWith    int        `json:"collides_with,omitempty"`
	Error           string     `json:"error,omitempty"`
}

func (r *report) lines(w io.Writer) printer {
	e := json.NewEncoder(w)
	return func(number int, m message, o sqstest.Outcome, done bool) error {
		if done {
			return nil
		}
		l := outcomeLine{
			Number: number, File: r.log.files[m.file], Line: int(m.line), Replay: int(m.replay), At: m.At.UTC(), Group: m.GroupID,
			DeduplicationID: o.DeduplicationID, Result: string(o.Result), Lost: o.Lost,
		}
		if o.Of >= 0 {
			until := o.Until.UTC()
			l.DuplicateOf, l.Until = o.Of+1, &until
		}
		if o.Collides >= 0 {
			l.CollidesWith = o.Collides + 1
		}
		if o.Err != nil {
			l.Error = o.Err.Error()
		}
		return e.Encode(l)
	}
}
