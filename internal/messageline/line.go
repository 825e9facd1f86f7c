// Package messageline reads lines of JSON with messages. The commands simulate, lint,
// send and replay all use [Parse], so a line has one meaning for all commands.
//
// A line is one JSON object. Its members are the members of [sqsfifo.Message] and facts
// about the message: time of the send, deduplication ID, and result. Member names are
// case-sensitive. The names of the SQS API are understood, too, such as MessageBody or, in a
// received message, Body. Repeated names, unknown names and text after the object are errors. A
// member with the value null counts as absent, except body. The member body is a string,
// or an object: then the message body is the object's canonical JSON.
package messageline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/textview"
)

// Members is a set of members that a line may have.
type Members uint16

// These are the members of a line. Each comment is the member's name in JSON.
const (
	At              Members = 1 << iota // at
	Group                               // group
	Body                                // body
	DeduplicationID                     // deduplication_id
	Attributes                          // attributes
	DedupeKey                           // dedupe_key
	EventID                             // event_id
	Dataset                             // dataset
	BodyHash                            // body_hash
	Status                              // status
	Sent                                // sent
	MessageID                           // message_id

	// Built is the set of members in the line of a message from Producer.Build.
	Built = Group | Body | Attributes | DedupeKey | EventID | Dataset

	// Stored is the set of members that a line of a replay file may have.
	Stored = Built | BodyHash | Status | Sent | MessageID
)

var names = []string{"at", "group", "body", "deduplication_id", "attributes", "dedupe_key", "event_id", "dataset", "body_hash", "status", "sent", "message_id"}

// memberOf returns the member with a JSON name, or 0 for an unknown name.
func memberOf(name string) Members {
	if i := slices.Index(names, name); i >= 0 {
		return 1 << i
	}
	return 0
}

// Line is a parsed line: a message and other members, such as the time of its send. The
// field Has is the set of present members. The fields of absent members are zero.
type Line struct {
	sqsfifo.Message

	At              time.Time // time of the send
	DeduplicationID string
	BodyHash        string
	Status          string // only in replay files; Parse does not check the text
	SentFrom        time.Time
	SentTo          time.Time
	MessageID       string

	Has Members
}

// Method Only returns an error if the line has members outside of the set in the parameter
// `allowed`. The error names these members.
func (l *Line) Only(allowed Members) error {
	var extra []string
	for i, name := range names {
		if l.Has&^allowed&(1<<i) != 0 {
			extra = append(extra, name)
		}
	}
	if extra == nil {
		return nil
	}
	return fmt.Errorf("%s: not a member of a message to send; remove it", strings.Join(extra, ", "))
}

// ErrNotObject is the error of a line that is valid JSON, but not an object.
var ErrNotObject = errors.New("the line is not a JSON object")

// Parse reads a line. The result does not refer to the memory of text. An error names the
// broken rule, and the invalid member or the position in text.
func Parse(text []byte) (Line, error) {
	if l, ok := parseFast(text); ok {
		return l, nil
	}
	return parseSlow(text)
}

// parseSlow reads any line. It defines the meaning of a line: parseFast returns either the
// same result or false.
func parseSlow(text []byte) (Line, error) {
	// Canonicalize finds the faults that package encoding/json accepts: duplicate names,
	// and invalid characters, which it would replace.
	if _, err := canonicaljson.Canonicalize(text); err != nil {
		return Line{}, Plain(err)
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil || members == nil {
		return Line{}, ErrNotObject
	}
	if err := fromAWS(members); err != nil {
		return Line{}, err
	}
	var l Line
	for _, name := range slices.Sorted(maps.Keys(members)) {
		m, raw := memberOf(name), members[name]
		if m == 0 {
			return Line{}, fmt.Errorf("unknown member %q; the members of a message are %s", name, strings.Join(names, ", "))
		}
		if m != Body && string(raw) == "null" {
			continue
		}
		if err := l.set(m, raw); err != nil {
			return Line{}, fmt.Errorf("%s: %w", name, err)
		}
		l.Has |= m
	}
	if l.Has&Body == 0 {
		return Line{}, errors.New("body is missing; it is a string, or an object that stands for its canonical form")
	}
	return l, nil
}

func (l *Line) set(m Members, raw []byte) (err error) {
	switch m {
	case Attributes:
		l.Attributes, err = texts(raw)
		return err
	case Dataset:
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		return d.Decode(&l.Dataset)
	case Sent:
		return l.setSent(raw)
	case Body:
		l.Body, err = bodyOf(raw)
		return err
	}
	text, err := textOf(raw)
	if err != nil {
		return err
	}
	return l.setText(m, text)
}

// setText sets the field of l for the JSON member m, for example l.Group for "group". The
// text is the member's value, which must be a JSON string.
func (l *Line) setText(m Members, text string) (err error) {
	switch m {
	case At:
		l.At, err = timeOf(textview.Bytes(text))
	case Group:
		l.Group = text
	case DeduplicationID:
		l.DeduplicationID = text
	case DedupeKey:
		l.DedupeKey = text
	case EventID:
		l.EventID, err = uuid.Parse(text)
	case BodyHash:
		l.BodyHash = text
	case Status:
		l.Status = text
	case MessageID:
		l.MessageID = text
	}
	return err
}

func (l *Line) setSent(raw []byte) error {
	bounds, err := texts(raw)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(bounds)) {
		to := map[string]*time.Time{"from": &l.SentFrom, "to": &l.SentTo}[name]
		if to == nil {
			return fmt.Errorf("unknown member %q; sent has from and to", name)
		}
		if *to, err = timeOf(textview.Bytes(bounds[name])); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func timeOf(text []byte) (t time.Time, err error) {
	err = t.UnmarshalText(text)
	switch {
	case err != nil:
	case bytes.IndexByte(text, ',') >= 0: // the standard library accepts a comma as the decimal point
		err = fmt.Errorf("%q is not a time of RFC 3339, such as 2025-12-04T12:00:00.5Z", text)
	case t.IsZero():
		err = errors.New("the zero time; write when the message was sent, as in 2025-12-04T12:00:00Z")
	}
	return t, err
}

var errNotText = errors.New("not a string")

func textOf(raw []byte) (text string, err error) {
	if raw[0] != '"' {
		return "", errNotText
	}
	err = json.Unmarshal(raw, &text)
	return text, err
}

// texts reads an object whose members are all strings.
func texts(raw []byte) (map[string]string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, errors.New("not an object with strings as members")
	}
	out := make(map[string]string, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var err error
		if out[name], err = textOf(members[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}

// bodyOf returns the message body from the JSON value of the member "body".
func bodyOf(raw []byte) (string, error) {
	switch raw[0] {
	case '"':
		return textOf(raw)
	case '{':
		return canonical(raw)
	}
	return "", errors.New("neither a string nor an object")
}

// plainError wraps an error and replaces its text.
type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }

func (e *plainError) Unwrap() error { return e.err }

// Reword returns an error that wraps err and has the given text instead of err's.
func Reword(text string, err error) error { return &plainError{text, err} }

// Plain removes the prefix "canonicaljson: " from an error of package canonicaljson,
// because users of a command do not know this package. It returns other errors unchanged.
func Plain(err error) error {
	if err == nil {
		return nil
	}
	var refused *canonicaljson.Error
	if !errors.As(err, &refused) {
		return err
	}
	return Reword(strings.TrimPrefix(err.Error(), "canonicaljson: "), err)
}

func canonical(raw []byte) (string, error) {
	out, err := canonicaljson.CanonicalizeStrict(raw)
	// The string may share the memory of out, because out is a new slice.
	return textview.String(out), Plain(err)
}
