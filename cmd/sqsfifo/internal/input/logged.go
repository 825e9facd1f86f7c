package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Logged is a message of a log.
type Logged struct {
	At      time.Time // zero if the log does not say
	Message lint.Message
}

// ParseLogged reads a line of an event log, or a message that Producer.Build made. The
// error is a [*LineError].
func ParseLogged(l Line) (Logged, error) {
	var m struct {
		At              time.Time         `json:"at"`
		Group           string            `json:"group"`
		Body            json.RawMessage   `json:"body"`
		DeduplicationID string            `json:"deduplication_id"`
		Attributes      map[string]string `json:"attributes"`

		// Of a built message.
		DedupeKey json.RawMessage `json:"dedupe_key"`
		EventID   json.RawMessage `json:"event_id"`
		Dataset   json.RawMessage `json:"dataset"`
	}
	// The decoder takes the last of two members with one name; a log that has both says
	// two things.
	if _, err := canonicaljson.Canonicalize(l.Text); err != nil {
		return Logged{}, l.Wrong(Plain(err))
	}
	d := json.NewDecoder(bytes.NewReader(l.Text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return Logged{}, l.Wrong(err)
	}
	body, err := bodyText(m.Body)
	if err != nil {
		return Logged{}, l.Wrong(err)
	}
	logged := Logged{At: m.At, Message: lint.Message{Body: body, GroupID: m.Group, DeduplicationID: m.DeduplicationID}}
	for name, value := range m.Attributes {
		if logged.Message.Attributes == nil {
			logged.Message.Attributes = map[string]lint.Attribute{}
		}
		logged.Message.Attributes[name] = lint.Attribute{DataType: "String", StringValue: value}
	}
	return logged, nil
}

func bodyText(raw json.RawMessage) (string, error) {
	switch {
	case len(raw) == 0:
		return "", errors.New("body is missing; it is a string, or an object that stands for its canonical form")
	case raw[0] == '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return text, err
	case raw[0] == '{':
		canonical, err := canonicaljson.CanonicalizeStrict(raw)
		if err != nil {
			return "", fmt.Errorf("body: %w", Plain(err))
		}
		return string(canonical), nil
	}
	return "", errors.New("body is neither a string nor an object")
}
