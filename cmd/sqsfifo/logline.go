package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/input"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/messageline"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// provenanceLine is a line written by sqsfifo.ProvenanceWriter.
type provenanceLine struct {
	Time         time.Time `json:"time"`
	Outcome      string    `json:"outcome"`
	DedupeKey    string    `json:"dedupe_key"`
	MessageGroup string    `json:"message_group"`
	BodyHash     string    `json:"body_hash"`
}

// outboxLine is a row exported from an outbox: the time of the first attempt to send, and
// the message as JSON. A row from the archive of package outbox has no first_attempt; it
// has left_at, the time of recording the outcome, in microseconds.
type outboxLine struct {
	FirstAttempt *int64 `json:"first_attempt"` // ms since 1970
	Message      string `json:"message"`
}

// errNotSent is the error of parseLine for a message that was never sent. The reader
// skips the line.
var errNotSent = errors.New("never sent")

// message is a prepared message of the log. Its place is the file and line that it was
// read from.
type message struct {
	sqstest.PreparedMessage
	place
}

// place is a line of a log file. With the flag --replay, a message has further copies on
// the same line: replay is 0 for the original, 1 for the first copy.
type place struct {
	file, replay int32
	line         int32
}

// lineReader reads the messages of one file.
type lineReader struct {
	name    string
	file    int32
	lines   *messageline.Reader
	prepare preparer
}

// preparer prepares one message for a simulation, like the method Prepare of
// [sqstest.Simulation]. Several goroutines may call it, in advance of the simulation.
type preparer func(sqstest.TimedMessage) sqstest.PreparedMessage

func newLineReader(name string, file int32, r io.Reader, prepare preparer) *lineReader {
	return &lineReader{name: name, file: file, lines: messageline.NewReader(r, 64<<10), prepare: prepare}
}

// next returns the next message of the file, or io.EOF at the end. It skips messages that
// were never sent, for example because the producer refused them.
func (l *lineReader) next() (message, error) {
	for {
		t, err := l.lines.Next()
		if errors.Is(err, io.EOF) {
			return message{}, err
		}
		var m sqstest.TimedMessage
		if err == nil {
			m, err = parseLine(t.Bytes)
		}
		if errors.Is(err, errNotSent) {
			continue
		}
		if err != nil {
			return message{}, input.Line{File: l.name, Number: t.Number, Text: t.Bytes}.Wrong(err)
		}
		return message{l.prepare(m), place{file: l.file, line: int32(t.Number)}}, nil
	}
}

// parseLine parses a message with the time of its send, a provenance record, or a row of
// an outbox.
func parseLine(text []byte) (sqstest.TimedMessage, error) {
	l, err := messageline.Parse(text)
	if err != nil {
		var members map[string]json.RawMessage
		if json.Unmarshal(text, &members) == nil {
			switch {
			case members["outcome"] != nil && members["time"] != nil:
				return parseProvenance(text)
			case members["message"] != nil && members["body"] == nil:
				return parseOutbox(text)
			}
		}
		return sqstest.TimedMessage{}, err
	}
	if l.At.IsZero() {
		return sqstest.TimedMessage{}, errors.New("at is missing; it is when the message was sent, as in 2025-12-04T12:00:00Z")
	}
	return sqstest.TimedMessage{At: l.At, GroupID: l.Group, Body: l.Body, DeduplicationID: l.DeduplicationID, Attributes: l.Attributes}, nil
}

// parseProvenance makes a message from a provenance record. The message has a substitute
// body, because the record has only the body's hash. The hash (body_hash) is also the
// deduplication ID. The message's time is the time of the outcome.
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
	// The record lacks the message's body, so the simulation uses this object. It
	// contains the real body's hash: two such objects differ if and only if the real
	// bodies differ.
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
