package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unsafe"

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

// provenanceLine is a line that sqsfifo.ProvenanceWriter writes.
type provenanceLine struct {
	Time         time.Time `json:"time"`
	Outcome      string    `json:"outcome"`
	DedupeKey    string    `json:"dedupe_key"`
	MessageGroup string    `json:"message_group"`
	BodyHash     string    `json:"body_hash"`
}

// outboxLine is a row exported from an outbox: when it was first sent, and the message
// as JSON. Package outbox keeps the time of an archived row as settled_at, in microseconds.
type outboxLine struct {
	FirstAttempt *int64 `json:"first_attempt"` // ms since 1970
	Message      string `json:"message"`
}

// errNotSent is a line about a message that was never sent.
var errNotSent = errors.New("never sent")

// message is a line of the log and where it stands.
type message struct {
	sqstest.PreparedMessage
	place
	alternatives []sqstest.PreparedMessage // for the what-ifs, by their order
}

// place is a line of a file; replay is zero in the log itself, else the number of the
// replay.
type place struct {
	file, replay int32
	line         int32
}

// lineReader reads the messages of one file.
type lineReader struct {
	name    string
	file    int32
	lines   *bufio.Scanner
	line    int32
	prepare preparer
}

// preparer makes of a message what the simulations take.
type preparer func(sqstest.TimedMessage) (sqstest.PreparedMessage, []sqstest.PreparedMessage)

func newLineReader(name string, file int32, r io.Reader, prepare preparer) *lineReader {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	return &lineReader{name: name, file: file, lines: lines, prepare: prepare}
}

// next returns io.EOF at the end.
func (l *lineReader) next() (message, error) {
	for l.lines.Scan() {
		l.line++
		text := l.lines.Bytes()
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		m, err := parseLine(text)
		if errors.Is(err, errNotSent) {
			continue
		}
		if err != nil {
			return message{}, l.at(l.line, err)
		}
		own, alternatives := l.prepare(m)
		return message{own, place{file: l.file, line: l.line}, alternatives}, nil
	}
	err := l.lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		return message{}, l.at(l.line+1, fmt.Errorf("the line is longer than %d bytes, which no message is", maxLine))
	}
	if err != nil {
		return message{}, fmt.Errorf("%s: %w", l.name, err)
	}
	return message{}, io.EOF
}

func (l *lineReader) at(line int32, err error) error {
	return fmt.Errorf("%s:%d: %w", l.name, line, err)
}

// parseLine reads a line of any of the three kinds.
func parseLine(text []byte) (sqstest.TimedMessage, error) {
	if m, ok := parseFast(text); ok {
		return m, nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) == nil {
		switch {
		case members["outcome"] != nil && members["time"] != nil:
			return parseProvenance(text)
		case members["message"] != nil && members["body"] == nil:
			return parseOutbox(text)
		}
	}
	return parseEvent(text)
}

func parseEvent(text []byte) (sqstest.TimedMessage, error) {
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
	if len(l.Body) == 0 {
		return m, errors.New("body is missing; it is a string, or an object that stands for its canonical form")
	}
	var err error
	m.Body, err = bodyOf(l.Body)
	return m, err
}

// bodyOf returns the body that a string or an object stands for.
func bodyOf(raw []byte) (string, error) {
	switch raw[0] {
	case '"':
		return unquote(raw)
	case '{':
		canonical, err := canonicaljson.CanonicalizeStrict(raw)
		// Nobody else has these bytes, so that they need no copy.
		return unsafe.String(unsafe.SliceData(canonical), len(canonical)), err
	}
	return "", errors.New("body is neither a string nor an object")
}

func unquote(raw []byte) (text string, err error) {
	err = json.Unmarshal(raw, &text)
	return text, err
}

// parseProvenance makes a message of a record: what SQS deduplicates by is in it, and
// the body is not. The time is that of the outcome.
func parseProvenance(text []byte) (sqstest.TimedMessage, error) {
	var r provenanceLine
	if err := json.Unmarshal(text, &r); err != nil {
		return sqstest.TimedMessage{}, err
	}
	if r.Outcome == "refused" {
		return sqstest.TimedMessage{}, errNotSent
	}
	if r.Time.IsZero() {
		return sqstest.TimedMessage{}, errors.New("the provenance record has no time")
	}
	if r.BodyHash == "" {
		return sqstest.TimedMessage{}, errors.New("the provenance record has no body_hash")
	}
	// It differs where the body does.
	body, err := canonicaljson.Marshal(map[string]string{"dedupe_key": r.DedupeKey, "body_hash": r.BodyHash})
	return sqstest.TimedMessage{At: r.Time, GroupID: r.MessageGroup, DeduplicationID: r.BodyHash, Body: string(body)}, err
}

func parseOutbox(text []byte) (sqstest.TimedMessage, error) {
	var row outboxLine
	if err := json.Unmarshal(text, &row); err != nil {
		return sqstest.TimedMessage{}, err
	}
	if row.FirstAttempt == nil {
		return sqstest.TimedMessage{}, errNotSent
	}
	var m struct {
		Group      string            `json:"group"`
		Body       string            `json:"body"`
		Attributes map[string]string `json:"attributes"`
	}
	if err := json.Unmarshal([]byte(row.Message), &m); err != nil {
		return sqstest.TimedMessage{}, fmt.Errorf("message: %w", err)
	}
	return sqstest.TimedMessage{At: time.UnixMilli(*row.FirstAttempt).UTC(), GroupID: m.Group, Body: m.Body, Attributes: m.Attributes}, nil
}
