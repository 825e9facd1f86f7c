package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// maxLine is more than the largest message takes with each of its characters
// escaped.
const maxLine = 8 << 20

// logLine is one line of an event log.
type logLine struct {
	At              time.Time         `json:"at"`
	Group           string            `json:"group"`
	Body            json.RawMessage   `json:"body"`
	DeduplicationID string            `json:"deduplication_id"`
	Attributes      map[string]string `json:"attributes"`
}

// message is a line of the log and where it stands.
type message struct {
	sqstest.TimedMessage
	file string
	line int
}

// readLogs reads the files in their order; none, or "-", is standard input.
func readLogs(files []string, stdin io.Reader) ([]message, error) {
	if len(files) == 0 {
		files = []string{"-"}
	}
	var out []message
	for _, name := range files {
		from, r := "standard input", stdin
		if name != "-" {
			f, err := os.Open(name) // #nosec G304 -- the file is the user's argument
			if err != nil {
				return nil, err
			}
			defer f.Close()
			from, r = name, f
		}
		messages, err := readLog(from, r)
		if err != nil {
			return nil, err
		}
		out = append(out, messages...)
	}
	return out, nil
}

func readLog(file string, r io.Reader) ([]message, error) {
	var out []message
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		m, err := parseLine(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		out = append(out, message{m, file, n})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return out, nil
}

func parseLine(text []byte) (sqstest.TimedMessage, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var l logLine
	if err := d.Decode(&l); err != nil {
		return sqstest.TimedMessage{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return sqstest.TimedMessage{}, errors.New("more than one value on the line")
	}
	if l.At.IsZero() {
		return sqstest.TimedMessage{}, errors.New("at is missing; it is when the message was sent, as in 2025-12-04T12:00:00Z")
	}
	m := sqstest.TimedMessage{At: l.At, GroupID: l.Group, DeduplicationID: l.DeduplicationID, Attributes: l.Attributes}
	switch {
	case len(l.Body) == 0:
		return m, errors.New("body is missing; it is a string, or an object that stands for its canonical form")
	case l.Body[0] == '"':
		return m, json.Unmarshal(l.Body, &m.Body)
	}
	body, err := canonicaljson.CanonicalizeStrict(l.Body)
	m.Body = string(body)
	return m, err
}
