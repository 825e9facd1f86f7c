package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/input"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest/compliance"
)

type complianceCmd struct {
	Events       string        `required:"" placeholder:"FILE" help:"Two or more events of the producer, one JSON line each, no two the same; - is standard input. The program gets the lines as they are."`
	Organization string        `placeholder:"NAME" help:"First label of event_source (default: that of the first message)."`
	Timeout      time.Duration `default:"1m" placeholder:"TIME" help:"Longest time for one event (default ${default})."`
	JSON         bool          `name:"json" help:"Print one JSON object for each case."`

	Command []string `arg:"" passthrough:"" help:"Producer to test, with its arguments."`
}

func (*complianceCmd) Help() string {
	return `Tests a producer in any language with the cases that the KFM contract requires in CI. A fake queue judges the messages of the producer. The exit code is 1 if a case fails, 2 if the suite cannot run.

The program reads events from standard input, one line each, sends each event as one message, and then prints one line, flushed; the line "error: TEXT" means that the event was not sent. A program that ends before it prints the line has failed, too. After a failure the event is offered again, as a pipeline does, to a new process if the program has ended. A program may also end after any number of events, with exit code 0.

The environment has the queue, SQSFIFO_QUEUE_URL, and for the AWS SDK AWS_ENDPOINT_URL_SQS, a region and credentials that mean nothing. Each of the suite's queues has its own process, about four for each event.

Two events suffice: real ones that differ in as little as possible and share a message group.

Examples:

	sqsfifo compliance --events scenes.jsonl -- python3 producer.py
	sqsfifo compliance --events scenes.jsonl --json -- node producer.mjs`
}

// complianceLine is one line of --json output. Member names are stable.
type complianceLine struct {
	Case    string `json:"case"`
	Outcome string `json:"outcome"` // passed, failed or not_judged
	Detail  string `json:"detail,omitempty"`
	Rule    string `json:"rule"`
	Source  string `json:"source"`
}

func (c *complianceCmd) run(ctx context.Context, std stdio) error {
	command := c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	if len(command) == 0 {
		return errors.New("no command: name the producer after --")
	}
	events, err := c.events(std.in)
	if err != nil {
		return err
	}
	producer := &servedProducer{command: command, timeout: c.Timeout}
	results, err := compliance.Results(ctx, compliance.Suite[json.RawMessage]{Send: producer.send, Events: events, Organization: c.Organization})
	err = errors.Join(err, producer.close())
	if err != nil {
		return err
	}
	out := newLineWriter(std.out)
	failed := false
	for _, r := range results {
		l := complianceLine{Case: r.Case, Outcome: "passed", Detail: r.NotJudged, Rule: r.Rule, Source: r.Source}
		switch {
		case r.Err != nil:
			failed, l.Outcome, l.Detail = true, "failed", r.Err.Error()
		case r.NotJudged != "":
			l.Outcome = "not_judged"
		}
		out.print(c.JSON, l, "%s", l.text())
	}
	return cmp.Or(out.flush(), findingsIf(failed))
}

// events returns the lines of the file c.Events, one event a line.
func (c *complianceCmd) events(stdin io.Reader) ([]json.RawMessage, error) {
	lines, err := input.Open([]string{c.Events}, stdin, false)
	if err != nil {
		return nil, err
	}
	var events []json.RawMessage
	for line, err := range lines.All() {
		if err != nil {
			return nil, err
		}
		events = append(events, line.Text)
	}
	return events, nil
}

func (l *complianceLine) text() string {
	text := fmt.Sprintf("%-10s  %s\n", strings.ReplaceAll(l.Outcome, "_", " "), l.Case)
	if l.Outcome == "failed" {
		text += "    " + strings.ReplaceAll(strings.TrimPrefix(l.Detail, l.Case+": "), "\n", "\n    ") + "\n"
	} else if l.Detail != "" {
		text += "    " + l.Detail + "\n"
	}
	return text
}
