package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
)

type ledgerCmd struct {
	Verify ledgerVerifyCmd `cmd:"" help:"Check that nothing in an export was altered."`
	Head   ledgerHeadCmd   `cmd:"" help:"Print the head of an export, to be kept elsewhere."`
	Trim   ledgerTrimCmd   `cmd:"" help:"Delete the exported entries from the database."`
}

func (*ledgerCmd) Help() string {
	return `Works on the ledger of an idempotency store, as sqlstore.Ledger.Export writes it: JSON lines of seals and of the entries under them. Only trim needs a database.

Examples:

	sqsfifo ledger head ledger.jsonl
	sqsfifo ledger verify ledger.jsonl --head 412:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08`
}

// ledgerFile names a file with an exported ledger. If the file continues an earlier export,
// the flag --after has the number and hash of the last seal in the earlier file.
type ledgerFile struct {
	After string `placeholder:"N:HEX" help:"Head at which the export before this one ended; the file begins with the seal after it."`
	File  string `arg:"" help:"Export of a ledger; - is standard input."`
}

// verify checks the ledger in the file, also against keptHeads: the numbers and hashes of
// seals that the user has kept. The error is a [*ledger.TamperError] for an altered file.
func (f ledgerFile) verify(std stdio, keptHeads ...ledger.Head) (ledger.Report, error) {
	var after ledger.Head
	if f.After != "" {
		var err error
		if after, err = ledger.ParseHead(f.After); err != nil {
			return ledger.Report{}, fmt.Errorf("--after: %w", err)
		}
	}
	in := std.in
	if f.File != "-" {
		file, err := os.Open(f.File)
		if err != nil {
			return ledger.Report{}, err
		}
		defer file.Close()
		if info, err := file.Stat(); err == nil && info.IsDir() {
			return ledger.Report{}, fmt.Errorf("%s is a folder; name a file", f.File)
		}
		in = file
	}
	return ledger.VerifyAfter(after, ledger.Read(in), keptHeads...)
}

// head verifies the file and returns the head of its last seal: the seal's number and hash.
// If the file was altered or has no seal, head prints the reason and returns errFindings.
func (f ledgerFile) head(std stdio) (ledger.Head, error) {
	report, err := f.verify(std)
	var tampered *ledger.TamperError
	switch {
	case errors.As(err, &tampered):
		fmt.Fprintf(std.err, "%s: %v\n", f.shown(), err)
		err = errFindings
	case err == nil && report.Seals == 0:
		fmt.Fprintf(std.err, "%s: no seal in it, and so no head\n", f.shown())
		err = errFindings
	}
	return report.Head, err
}

// shown returns the file's name as printed in messages.
func (f ledgerFile) shown() string {
	if f.File == "-" {
		return "standard input"
	}
	return f.File
}

type ledgerVerifyCmd struct {
	ledgerFile `embed:""`

	Head []string `placeholder:"N:HEX" sep:"none" help:"A head that was kept, as \"ledger head\" prints it; may be repeated."`
	JSON bool     `name:"json" help:"Print one JSON object: file, whole, head, seals, entries, confirmed, and what is wrong."`
}

func (*ledgerVerifyCmd) Help() string {
	return `Computes all hashes of an export again. Standard output has one line: how much was verified, or the first entry or seal that was altered, dropped, inserted, swapped with another, or cut off.

A file alone cannot show that its last seals are missing, or that somebody computed all hashes again from some seal on. Keep heads where those who can write to the database cannot, and pass them with --head: then the ledger up to the last of them is what it was when that head was kept.

The exit code is 0 if the ledger is whole, 1 if it is not, 2 if the file cannot be read or a head is none.

Examples:

	sqsfifo ledger verify ledger.jsonl
	sqsfifo ledger verify ledger.jsonl --head 412:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
	sqsfifo ledger verify december.jsonl --after "$(cat november.head)"`
}

// verifiedLine is one line of --json output. Member names are stable.
type verifiedLine struct {
	File      string      `json:"file"`
	Whole     bool        `json:"whole"`
	Head      ledger.Head `json:"head"`
	Seals     int64       `json:"seals"`
	Entries   int64       `json:"entries"`
	Confirmed int64       `json:"confirmed"` // number of the last seal confirmed by a --head; 0 if none

	Kind  string `json:"kind,omitempty"`
	Line  int    `json:"line,omitempty"`
	Seal  int64  `json:"seal,omitempty"`
	Seq   int64  `json:"seq,omitempty"`
	Other int64  `json:"other,omitempty"`
	Error string `json:"error,omitempty"`
}

func (c *ledgerVerifyCmd) run(_ context.Context, std stdio) error {
	var keptHeads []ledger.Head
	for _, text := range c.Head {
		head, err := ledger.ParseHead(text)
		if err != nil {
			return fmt.Errorf("--head: %w", err)
		}
		keptHeads = append(keptHeads, head)
	}
	report, err := c.verify(std, keptHeads...)
	var tampered *ledger.TamperError
	if err != nil && !errors.As(err, &tampered) {
		return err
	}
	if err := c.print(std.out, report, tampered); err != nil {
		return err
	}
	if tampered != nil {
		return errFindings
	}
	if len(keptHeads) == 0 {
		fmt.Fprintln(std.err, "no --head: seals that are missing at the end, and hashes that were all computed again, cannot be seen")
	}
	return nil
}

func (c *ledgerVerifyCmd) print(w io.Writer, r ledger.Report, tampered *ledger.TamperError) error {
	line := verifiedLine{File: c.shown(), Whole: tampered == nil, Head: r.Head, Seals: r.Seals, Entries: r.Entries, Confirmed: r.Confirmed}
	text := fmt.Sprintf("%s: whole: %s, %s, head %s", line.File, counted(int(r.Seals), "seal"), countedAs(int(r.Entries), "entry", "entries"), r.Head)
	if r.Confirmed > 0 {
		text += fmt.Sprintf("; as it was up to seal %d, whose head was kept", r.Confirmed)
	}
	if tampered != nil {
		line.Kind, line.Line, line.Seal, line.Seq, line.Other, line.Error = tampered.Kind.String(), tampered.Line, tampered.Seal, tampered.Seq, tampered.Other, tampered.Error()
		text = fmt.Sprintf("%s: %s", line.File, line.Error)
	}
	return printLine(w, c.JSON, line, text)
}

type ledgerHeadCmd struct {
	ledgerFile `embed:""`

	JSON bool `name:"json" help:"Print one JSON object: file and head."`
}

// headLine is one line of --json output. Member names are stable.
type headLine struct {
	File string      `json:"file"`
	Head ledger.Head `json:"head"`
}

func (*ledgerHeadCmd) Help() string {
	return `Verifies an export and prints the head of its last seal, the number of the seal and its hash. Keep it where those who can write to the database cannot: in a ticket, in another account, on paper. "ledger verify --head" compares with it.

The exit code is 0 if the ledger is whole, 1 if it is not or has no seal, 2 if the file cannot be read.

Examples:

	sqsfifo ledger head ledger.jsonl > "$(date +%F).head"`
}

func (c *ledgerHeadCmd) run(_ context.Context, std stdio) error {
	head, err := c.head(std)
	if err != nil {
		return err
	}
	return printLine(std.out, c.JSON, headLine{c.shown(), head}, head.String())
}
