package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/input"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/messageline"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// errNotStored is the error of parseLine for a provenance record of a message that SQS did
// not store. The reader skips the line.
var errNotStored = errors.New("not stored")

// message is a prepared message of the log. The field place is the message's file and line.
type message struct {
	sqstest.PreparedMessage
	place

	unkeyed bool // the body has no --key
}

// place is a message's line in a log file. The field `replay` is 0 for the message in the
// log, and n for its copy in replay number n (flag --replay).
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

// preparer prepares one message for a simulation. The place of the message is not set.
// Several goroutines may call a preparer, in advance of the simulation.
type preparer func(sqstest.TimedMessage) message

func newLineReader(name string, file int32, r io.Reader, prepare preparer) *lineReader {
	return &lineReader{name: name, file: file, lines: messageline.NewReader(r, 64<<10), prepare: prepare}
}

// next returns the next message of the file, or io.EOF at the end. It skips provenance
// records of messages that SQS did not store.
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
		if errors.Is(err, errNotStored) {
			continue
		}
		if err != nil {
			return message{}, input.Line{File: l.name, Number: t.Number, Text: t.Bytes}.Wrong(err)
		}
		out := l.prepare(m)
		out.place = place{file: l.file, line: int32(t.Number)}
		return out, nil
	}
}

// parseLine parses a message with the time of its send, or a provenance record.
func parseLine(text []byte) (sqstest.TimedMessage, error) {
	l, err := messageline.Parse(text)
	if err != nil {
		var members map[string]json.RawMessage
		if json.Unmarshal(text, &members) == nil && members["outcome"] != nil && members["time"] != nil {
			return parseProvenance(text)
		}
		return sqstest.TimedMessage{}, err
	}
	if l.At.IsZero() {
		return sqstest.TimedMessage{}, errors.New("at is missing; it is when the message was sent, as in 2025-12-04T12:00:00Z")
	}
	return sqstest.TimedMessage{At: l.At, GroupID: l.Group, Body: l.Body, DeduplicationID: l.DeduplicationID, Attributes: l.Attributes}, nil
}

// parseProvenance makes a message from a provenance record. The body's hash (body_hash) is
// the deduplication ID. The message's time is the time of the outcome. An event in doubt
// counts as stored. An altered event does not, because SQS stored another message.
func parseProvenance(text []byte) (sqstest.TimedMessage, error) {
	var r sqsfifo.ProvenanceRecord
	if err := json.Unmarshal(text, &r); err != nil {
		return sqstest.TimedMessage{}, err
	}
	switch r.Outcome {
	case sqsfifo.ProvenanceStored, sqsfifo.ProvenanceDuplicate, sqsfifo.ProvenanceInDoubt:
	case sqsfifo.ProvenanceNotStored, sqsfifo.ProvenanceAltered:
		return sqstest.TimedMessage{}, errNotStored
	default:
		return sqstest.TimedMessage{}, fmt.Errorf("outcome %q, want stored, duplicate, in_doubt, not_stored or altered", r.Outcome)
	}
	if r.Time.IsZero() {
		return sqstest.TimedMessage{}, errors.New("the provenance record has no time")
	}
	if r.BodyHash == "" {
		return sqstest.TimedMessage{}, errors.New("the provenance record has no body_hash")
	}
	// The record has no body. Make a substitute: two substitutes are equal exactly if the
	// real bodies are equal.
	body, err := canonicaljson.Marshal(map[string]string{"dedupe_key": r.DedupeKey, "body_hash": r.BodyHash})
	return sqstest.TimedMessage{At: r.Time, GroupID: r.MessageGroup, DeduplicationID: r.BodyHash, Body: string(body)}, err
}
