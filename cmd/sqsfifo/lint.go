package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/catalog"
	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/input"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/messageline"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

type lintCmd struct {
	JSON         bool     `name:"json" help:"Print one JSON object for each finding."`
	Organization string   `placeholder:"NAME" help:"Only accepted first label of event_source (default: every one)."`
	MaxSize      int      `placeholder:"N" help:"MaximumMessageSize of the queue in bytes (default 1048576)."`
	Disable      []string `placeholder:"RULE" help:"Rules that are not reported, by ID or name."`
	FailOn       failOn   `enum:"error,warning,never" default:"warning" placeholder:"SEVERITY" help:"Least severity that makes the exit code 1: error, warning or never (default ${default})."`
	Catalog      string   `placeholder:"FOLDER" help:"Folder of a static STAC catalogue: report datasets that it does not have (SF047)."`
	NoEnvelope   bool     `help:"The bodies are not envelopes of the KFM contract: leave out the rules about the form of a body (SF030 to SF046), and count what was left out."`
	NoStream     bool     `help:"Look at each message alone, and not at those of the five minutes before it (SF060 to SF064)."`

	File []string `arg:"" optional:"" help:"Message logs; - or none is standard input."`
}

func (*lintCmd) Help() string {
	return `Holds messages against the rules that keep an SQS FIFO queue from losing or doubling events. "sqsfifo explain" has the rules.

A line is a line of a log as "sqsfifo simulate" reads it, or a message that Producer.Build or "sqsfifo send --dry-run" made:

	{"at":"2025-12-04T12:00:00Z","group":"p32r29","body":"...","attributes":{"k":"v"},"deduplication_id":"..."}

at may be left out; without it messages are compared as if they were sent at one moment. "sqsfifo help logs" has all members, and those of AWS. A body that is an object stands for its canonical form.

A finding is one line, or with --json one object, with the file and the line, the rule, the field, the place in the body, what is wrong and the way out. The exit code is 1 if there are findings of the severity of --fail-on or worse, 2 if a line is not a message.

Examples:

	sqsfifo lint events.jsonl
	sqsfifo lint --no-envelope events.jsonl
	sqsfifo send events.jsonl ... --dry-run | sqsfifo lint --json`
}

// findingLine is one line of --json output. Member names are stable.
type findingLine struct {
	File string `json:"file"`
	Line int    `json:"line"`
	lint.Finding
}

func (c *lintCmd) run(_ context.Context, std stdio) error {
	disabled := map[string]bool{}
	for _, name := range c.Disable {
		r, err := findRule(name)
		if err != nil {
			return fmt.Errorf("--disable: %w", err)
		}
		disabled[r.ID] = true
	}
	if faults := (lint.Contract{Organization: c.Organization}).CheckOrganization(); len(faults) > 0 {
		return fmt.Errorf("--organization: %s", faults[0].Message)
	}
	var knows func(string) bool
	if c.Catalog != "" {
		s, err := catalog.Open(os.DirFS(c.Catalog))
		if err != nil {
			return fmt.Errorf("--catalog: %w", err)
		}
		knows = s.Knows
	}
	lines, err := input.Open(c.File, std.in, false)
	if err != nil {
		return err
	}
	out := newLineWriter(std.out)
	check := c.checker(knows)
	count := map[lint.Severity]int{}
	messages, failed, left := 0, false, 0
	for line, err := range lines.All() {
		var m messageline.Line
		if err == nil {
			if m, err = messageline.Parse(line.Text); err != nil {
				err = line.Wrong(err)
			}
		}
		if err != nil {
			return errors.Join(out.flush(), err)
		}
		messages++
		for _, f := range check(m) {
			if disabled[f.Rule] {
				continue
			}
			if c.NoEnvelope && m.Body != "" && f.Rule >= "SF030" && f.Rule <= "SF046" {
				left++
				continue
			}
			count[f.Severity]++
			failed = failed || c.FailOn.fails(f.Severity)
			out.print(c.JSON, findingLine{line.File, line.Number, f}, "%s:%d: %s\n", line.File, line.Number, strings.ReplaceAll(f.String(), "\n", " "))
		}
		if out.err != nil {
			return out.err
		}
	}
	if err := out.flush(); err != nil {
		return err
	}
	if left > 0 {
		fmt.Fprintf(std.err, "left out: %s about the form of a body\n", counted(left, "finding"))
	}
	fmt.Fprintf(std.err, "%s: %s, %s, %s\n", counted(messages, "message"), counted(count[lint.Error], "error"), counted(count[lint.Warning], "warning"), counted(count[lint.Info], "info"))
	return findingsIf(failed)
}

// checker returns a function that checks the next message of the log and returns its
// findings. Some rules compare the message with earlier ones. The parameter `knows` is nil
// without a catalogue.
func (c *lintCmd) checker(knows func(string) bool) func(messageline.Line) []lint.Finding {
	stream, last := lint.NewQueueChecker(), time.Unix(0, 0)
	return func(l messageline.Line) []lint.Finding {
		if !l.At.IsZero() {
			if l.At.After(last) { // a lint.QueueChecker accepts no decreasing times
				last = l.At
			}
			l.At = last
		}
		m := lint.Message{
			Body: l.Body, GroupID: l.Group, DeduplicationID: l.DeduplicationID, Attributes: input.LintAttributes(l.Attributes),
			Organization: c.Organization, MaxSize: c.MaxSize, KnowsDataset: knows,
		}
		if l.Dataset != nil {
			m.DatasetID = l.Dataset.ID
		}
		if c.NoStream {
			return lint.Check(m)
		}
		return stream.Check(l.At, m)
	}
}
