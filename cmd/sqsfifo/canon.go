package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/input"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/messageline"
)

type canonCmd struct {
	Check bool `help:"Print nothing and report each line that is not in canonical form."`
	Hash  bool `help:"Print the SHA-256 of the canonical form, which is the deduplication ID of a body, in place of it."`
	JSON  bool `name:"json" help:"Print one JSON object for each line: file, line, canonical, body_hash, bytes, was_canonical."`
	Round bool `help:"Round numbers to doubles as RFC 8785 says, in place of refusing integers beyond 2^53."`
	Whole bool `help:"Take a file for one JSON text, in place of its lines."`

	File []string `arg:"" optional:"" help:"Files of JSON lines; - or none is standard input."`
}

func (*canonCmd) Help() string {
	return `Writes each JSON text in its canonical form (RFC 8785): no white space, members in order, one spelling of each number and string. Equal values have equal bytes, and so the same deduplication ID.

What cannot be written faithfully is refused, with the file, the line, the byte, the JSON pointer and the rule: two members with one name, integers beyond 2^53 (unless --round), broken UTF-8, lone surrogates.

Without --check the command ends at the first line that it refuses, with exit code 2. With --check it looks at all lines, and the exit code is 1 if one is not in canonical form or is refused.

Examples:

	sqsfifo canon bodies.jsonl
	sqsfifo canon --whole event.json
	sqsfifo canon --check bodies.jsonl
	sqsfifo canon --hash <<< '{"b":1,"a":1.0}'`
}

// canonLine is one line of --json output. Member names are stable.
type canonLine struct {
	File         string `json:"file"`
	Line         int    `json:"line"`
	Canonical    string `json:"canonical"`
	BodyHash     string `json:"body_hash"`
	Bytes        int    `json:"bytes"`
	WasCanonical bool   `json:"was_canonical"`
}

func (c *canonCmd) run(_ context.Context, std stdio) error {
	if c.Check && (c.Hash || c.JSON) {
		return errors.New("--check prints nothing; leave out --hash and --json")
	}
	if c.Hash && c.JSON {
		return errors.New("--hash and --json: the JSON objects have the hash; use one of them")
	}
	texts, err := input.Open(c.File, std.in, c.Whole)
	if err != nil {
		return err
	}
	out := newLineWriter(std.out)
	found := false
	for l, err := range texts.All() {
		if err != nil {
			return errors.Join(err, out.flush())
		}
		canonical, err := c.canonicalize(l.Text)
		switch {
		case err != nil && c.Check:
			fmt.Fprintln(std.err, l.Wrong(err))
			found = true
		case err != nil:
			return errors.Join(out.flush(), l.Wrong(err))
		case c.Check:
			if at := firstDifference(string(l.Text), string(canonical)); at >= 0 {
				fmt.Fprintln(std.err, l.Wrong(notCanonical(string(l.Text), string(canonical), at)))
				found = true
			}
		default:
			c.print(out, l, string(canonical))
		}
		if out.err != nil {
			return out.err
		}
	}
	return cmp.Or(out.flush(), findingsIf(found))
}

func (c *canonCmd) canonicalize(text []byte) ([]byte, error) {
	if c.Round {
		canonical, err := canonicaljson.Canonicalize(text)
		return canonical, messageline.Plain(err)
	}
	canonical, err := canonicaljson.CanonicalizeStrict(text)
	return canonical, messageline.Plain(err)
}

func (c *canonCmd) print(out *lineWriter, l input.Line, canonical string) {
	hash := sdk.BodyHash(canonical)
	switch {
	case c.JSON:
		out.write(canonLine{l.File, l.Number, canonical, hash, len(canonical), string(l.Text) == canonical})
	case c.Hash:
		out.print(false, nil, "%s\n", hash)
	default:
		out.print(false, nil, "%s\n", canonical)
	}
}

// firstDifference returns the offset of the first byte in which two texts differ, or -1 for
// equal texts. It ignores one line break at the end of the parameter `text`, because a file
// usually ends with one.
func firstDifference(text, canonical string) int {
	text = strings.TrimSuffix(text, "\n")
	if text == canonical {
		return -1
	}
	for i := range min(len(text), len(canonical)) {
		if text[i] != canonical[i] {
			return i
		}
	}
	return min(len(text), len(canonical))
}

func notCanonical(text, canonical string, at int) error {
	const shown = 20
	from := func(s string) string {
		if at >= len(s) {
			return "the end"
		}
		rest := s[at:]
		if len(rest) > shown {
			return fmt.Sprintf("%q...", strings.ToValidUTF8(rest[:shown], ""))
		}
		return fmt.Sprintf("%q", rest)
	}
	return fmt.Errorf("not in canonical form: byte %d begins %s, want %s", at, from(text), from(canonical))
}
