// Command sqsfifo works on SQS FIFO deduplication without AWS: it shows what a
// queue would do with a log of messages, serves a fake queue to programs in any
// language, and finds Go code that makes such a queue lose or duplicate events.
//
//	sqsfifo simulate events.jsonl
//	sqsfifo serve -queue scenes.fifo
//	sqsfifo vet ./...
//	sqsfifo explain SF001
//	sqsfifo version
//
// It is also a tool for "go vet -vettool".
//
// Data goes to standard output, everything else to standard error. It exits with
// 0 when all is well, 1 when it found something, 2 when it could not do its work.
package main

import (
	"context"
	"errors"
	"flag"
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

// command is one subcommand: run returns the exit code, and an error only with
// exitFailed.
type command struct {
	name, summary string
	run           func(ctx context.Context, args []string, io stdio) (int, error)
}

var commands = []command{
	{"simulate", "show what a queue does with a log of messages", simulate},
	{"serve", "serve a fake SQS on this machine", serve},
	{"vet", "check Go code that sends to FIFO queues", vetSource},
	{"explain", "show what a rule requires, and why", explain},
	{"version", "show the version of this command", version},
}

func main() {
	if vet.IsToolCall(os.Args[1:]) {
		vet.ToolMain(fifovet.Analyzer)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, io stdio) int {
	if len(args) == 0 {
		usage(io.err)
		return exitFailed
	}
	switch args[0] {
	case "-h", "-help", "--help", "help":
		usage(io.out)
		return exitFine
	}
	for _, c := range commands {
		if c.name != args[0] {
			continue
		}
		code, err := c.run(ctx, args[1:], io)
		if errors.Is(err, flag.ErrHelp) {
			return exitFine
		}
		if err != nil {
			fmt.Fprintf(io.err, "sqsfifo %s: %v\n", c.name, err)
			return exitFailed
		}
		return code
	}
	fmt.Fprintf(io.err, "sqsfifo: no command %q\n", args[0])
	usage(io.err)
	return exitFailed
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "usage: sqsfifo <command> [flags]")
	for _, c := range commands {
		fmt.Fprintf(w, "  %-9s %s\n", c.name, c.summary)
	}
	fmt.Fprintln(w, "sqsfifo <command> -h shows a command's flags")
}

// parse reads the flags of a command. Help was asked for and goes to standard
// output; what is wrong is left to run.
func parse(flags *flag.FlagSet, args []string, help string, std stdio) error {
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(std.out, help)
		flags.SetOutput(std.out)
		flags.PrintDefaults()
	}
	return err
}
