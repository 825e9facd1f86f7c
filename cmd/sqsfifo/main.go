// Command sqsfifo works on SQS FIFO queues from a shell. It sends events with the
// guarantees of the library, receives messages in order, simulates a queue for a log of
// messages, serves a fake queue to programs in any language, probes the behaviour of a
// queue, replays stored messages, manages an outbox, an idempotency store and its ledger,
// and finds messages and Go code that make a queue lose or duplicate events.
//
//	sqsfifo send events.jsonl --source acme.billing.export --key 'export|{/day}' --group exports --time /at
//	sqsfifo simulate events.jsonl
//	sqsfifo serve --queue scenes.fifo
//	sqsfifo vet ./...
//	sqsfifo explain SF001
//	sqsfifo help
//
// It is also a tool for "go vet -vettool".
//
// Data goes to standard output, all other output to standard error. The exit code is 0
// for success, 1 for findings, and 2 if the command could not do its work.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
)

// These are the exit codes of all commands.
const (
	exitFine     = 0
	exitFindings = 1
	exitFailed   = 2
)

// stdio holds the standard streams of a command.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// command is a subcommand whose flags were parsed. The exit code of the process is exitFine
// if the method `run` returns nil, exitFindings for errFindings, and else exitFailed.
type command interface {
	run(ctx context.Context, std stdio) error
}

// errFindings is the result of a command that did its work and has findings. main prints
// every error except errFindings. No other error wraps errFindings.
var errFindings = errors.New("findings")

// findingsIf returns errFindings if `found` is true, and else nil.
func findingsIf(found bool) error {
	if found {
		return errFindings
	}
	return nil
}

// commandLine lists the subcommands in help order.
type commandLine struct {
	Send       sendCmd       `cmd:"" help:"Send events to a FIFO queue."`
	Consume    consumeCmd    `cmd:"" help:"Receive messages in order: print each, or run a command for each."`
	Simulate   simulateCmd   `cmd:"" help:"Show what a queue does with a log of messages."`
	Serve      serveCmd      `cmd:"" help:"Serve a fake SQS on this machine."`
	Compliance complianceCmd `cmd:"" help:"Test a producer in any language."`
	Probe      probeCmd      `cmd:"" help:"Ask a queue how it deduplicates."`
	Replay     replayCmd     `cmd:"" help:"Send stored messages again, by a plan."`
	Outbox     outboxCmd     `cmd:"" help:"Look at an outbox, and resolve a message whose outcome is unknown."`
	Ledger     ledgerCmd     `cmd:"" help:"Verify the exported ledger of an idempotency store."`
	Keys       keysCmd       `cmd:"" help:"List the keys of an idempotency store, and resolve keys whose outcome nobody knows."`
	Key        keyCmd        `cmd:"" help:"Compute the idempotency key of a dataset."`
	Provenance provenanceCmd `cmd:"" help:"Write provenance records as W3C PROV or OpenLineage."`
	Canon      canonCmd      `cmd:"" help:"Write JSON in canonical form, or check that it is."`
	Lint       lintCmd       `cmd:"" help:"Check messages against the rules."`
	Vet        vetCmd        `cmd:"" help:"Check Go code that sends to FIFO queues."`
	Explain    explainCmd    `cmd:"" help:"Show what a rule requires, and why."`
	Completion completionCmd `cmd:"" help:"Print a script that completes commands in a shell."`
	Version    versionCmd    `cmd:"" help:"Show the version of this command."`
	Help       helpCmd       `cmd:"" help:"Show the manual of a command, or a topic."`
}

func main() {
	if vet.IsToolCall(os.Args[1:]) {
		vet.ToolMain(fifovet.Analyzer)
	}
	os.Exit(process())
}

// process runs the command line of this process and returns the exit code.
func process() int {
	if len(os.Args) > 1 && (os.Args[1] == "send" || os.Args[1] == "consume") {
		// A write to a closed standard output must return an error, not end the process:
		// messages may be in flight.
		signal.Ignore(syscall.SIGPIPE)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// After the first signal the command finishes its work. A second signal ends the
	// process.
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr})
}

func run(ctx context.Context, args []string, std stdio) int {
	c, name, err := parse(args, std)
	if err != nil {
		complain(std.err, name, err)
		fmt.Fprintf(std.err, "see %q\n", name+" --help")
		return exitFailed
	}
	if c == nil { // help was requested and printed
		return exitFine
	}
	switch err := c.run(ctx, std); err { //nolint:errorlint // errFindings is never wrapped
	case nil:
		return exitFine
	case errFindings:
		return exitFindings
	default:
		complain(std.err, name, err)
		return exitFailed
	}
}

// complain prints one line for each of the joined errors. If several errors are about a
// closed pipe (EPIPE), it prints only the longest of these.
func complain(w io.Writer, name string, err error) {
	var texts []string
	pipe := -1
	for _, e := range split(err) {
		text := e.Error()
		switch {
		case !errors.Is(e, syscall.EPIPE):
			texts = append(texts, text)
		case pipe < 0:
			pipe = len(texts)
			texts = append(texts, text)
		case len(text) > len(texts[pipe]):
			texts[pipe] = text
		}
	}
	for _, text := range texts {
		fmt.Fprintf(w, "%s: %s\n", name, text)
	}
}
