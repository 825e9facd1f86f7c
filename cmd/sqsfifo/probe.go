package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/probe"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

type probeCmd struct {
	Queue        queueFlags `embed:"" group:"Queue:"`
	Organization string     `default:"kfm" placeholder:"NAME" help:"First label of the event_source of the probe's messages, NAME.sqsfifo.probe (default ${default})."`
	Window       bool       `help:"Wait for five minutes to see how long the queue recognises a duplicate."`
	Clean        bool       `help:"Receive and delete the probe's messages. Messages of others that come with them are given back at once; their receive count grows by one."`
	JSON         bool       `name:"json" help:"Print one JSON object for each check: check, result, answer."`
}

func (*probeCmd) Help() string {
	return `Asks a FIFO queue how it deduplicates, by sending to it: whether it hashes bodies, over which scope, whether an attribute distinguishes two messages, whether an explicit ID hides another body, and with --window how long it remembers.

A result is as_expected, differs (the queue does what the library does not expect of one), note, or not_tried. The exit code is 1 if a check differs, 2 if the queue could not be asked.

The messages are envelopes with the event_source ORGANIZATION.sqsfifo.probe and a dedupe_key that begins with "sqsfifo-probe|", in two message groups that begin with "sqsfifo-probe-" and end with a random number. A queue stores three to seven of them. Whoever consumes the queue gets them: on a queue in use, make sure that consumers pass over an event_source that they do not know.

Without --clean nothing is received, so that no message of anybody else is touched; the probe's messages stay until they are consumed or expire. SQS cannot receive by group: with --clean messages of others may come, too. Each is made visible again at once, none is deleted, and the command says how many there were. --clean is refused for queues with a dead-letter queue, because a receive counts towards it, and gives up when it sees only messages of others.

Permissions: sqs:SendMessage; sqs:GetQueueAttributes if it is there; with --clean sqs:GetQueueAttributes, sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility.

Examples:

	sqsfifo probe --queue-url https://sqs.eu-central-1.amazonaws.com/123456789012/scenes.fifo
	sqsfifo probe --queue-url http://127.0.0.1:9324/000000000000/events.fifo --clean --json`
}

func (c *probeCmd) run(ctx context.Context, std stdio) error {
	if c.Queue.QueueURL == "" {
		return errors.New("--queue-url is missing: name the queue to ask")
	}
	source := c.Organization + ".sqsfifo.probe"
	if faults := (lint.Contract{Organization: c.Organization}).CheckOrganization(); len(faults) > 0 {
		return fmt.Errorf("--organization: %s", faults[0].Message)
	}
	client, err := c.Queue.client(ctx)
	if err != nil {
		return err
	}
	report, err := probe.Run(ctx, probe.Config{Client: client, QueueURL: c.Queue.QueueURL, Source: source, Window: c.Window, Clean: c.Clean})
	if printErr := c.print(std, report); printErr != nil {
		err = errors.Join(err, printErr)
	}
	if report.Sent > 0 {
		fmt.Fprintf(std.err, "run %s: %s in the groups %s and %s", report.Run, counted(report.Sent, "message"), report.Groups[0], report.Groups[1])
		switch left := report.Sent - report.Deleted; {
		case left == 0:
			fmt.Fprint(std.err, ", all deleted")
		case c.Clean:
			fmt.Fprintf(std.err, ", %d deleted; %d stay until they are consumed or expire", report.Deleted, left)
		default:
			fmt.Fprint(std.err, "; they stay until they are consumed or expire (--clean deletes them)")
		}
		if report.Returned > 0 {
			fmt.Fprintf(std.err, "; messages of others received and given back: %d", report.Returned)
		}
		fmt.Fprintln(std.err)
	}
	if err != nil {
		return plainCause(err, c.Queue.QueueURL)
	}
	return findingsIf(report.Differs())
}

func (c *probeCmd) print(std stdio, report *probe.Report) error {
	if c.JSON {
		out := newLineWriter(std.out)
		for _, check := range report.Checks {
			out.write(check)
		}
		return out.flush()
	}
	t := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	for _, check := range report.Checks {
		fmt.Fprintf(t, "%s\t%s\t%s\n", check.Name, check.Result, check.Answer)
	}
	return t.Flush()
}
