// Command sqsfifo works on SQS FIFO queues from a shell: it sends events with the
// guarantees of the library, shows what a queue would do with a log of messages,
// serves a fake queue to programs in any language, asks a queue how it behaves, sends
// stored messages again, looks after an outbox, an idempotency store and its ledger, and
// finds messages and Go code that make such a queue lose or duplicate events.
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
// Data goes to standard output, everything else to standard error. It exits with
// 0 when all is well, 1 when it found something, 2 when it could not do its work.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
)

// The exit codes.
const (
	exitFine     = 0
	exitFindings = 1
	exitFailed   = 2
)

// stdio is what a command talks to.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// command is a subcommand with its flags set. run returns the exit code, and an
// error only with exitFailed.
type command interface {
	run(ctx context.Context, std stdio) (int, error)
}

// commandLine is every subcommand, in the order of the help.
type commandLine struct {
	Send       sendCmd       `cmd:"" help:"Send events to a FIFO queue."`
	Simulate   simulateCmd   `cmd:"" help:"Show what a queue does with a log of messages."`
	Serve      serveCmd      `cmd:"" help:"Serve a fake SQS on this machine."`
	Probe      probeCmd      `cmd:"" help:"Ask a queue how it deduplicates."`
	Replay     replayCmd     `cmd:"" help:"Send stored messages again, by a plan."`
	Outbox     outboxCmd     `cmd:"" help:"Look at an outbox, and settle a message that is late."`
	Ledger     ledgerCmd     `cmd:"" help:"Verify the exported ledger of an idempotency store."`
	Keys       keysCmd       `cmd:"" help:"Look at an idempotency store, and settle a key that is held."`
	Key        keyCmd        `cmd:"" help:"Compute the idempotency key of a dataset."`
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

// process runs the command line of this process.
func process() int {
	if len(os.Args) > 1 && os.Args[1] == "send" {
		// A closed standard output is an error of Write, and not the end of a process that
		// has messages under way.
		signal.Ignore(syscall.SIGPIPE)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal ends the work in order, the second one ends the process.
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
	if c == nil { // the help was asked for, and printed
		return exitFine
	}
	code, err := c.run(ctx, std)
	if err != nil {
		complain(std.err, name, err)
		return exitFailed
	}
	return code
}

// complain prints one line for each of the errors that are joined.
func complain(w io.Writer, name string, err error) {
	for _, e := range split(err) {
		fmt.Fprintf(w, "%s: %v\n", name, e)
	}
}
