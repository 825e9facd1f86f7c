package input

import (
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/messageline"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Logged is one message in a log of sent messages.
type Logged struct {
	At      time.Time // zero if the line has no time
	Message lint.Message
}

// ParseLogged parses a line of an event log, or a message from Producer.Build. The error
// is a [*LineError].
func ParseLogged(l Line) (Logged, error) {
	m, err := messageline.Parse(l.Text)
	if err != nil {
		return Logged{}, l.Wrong(err)
	}
	logged := Logged{At: m.At, Message: lint.Message{Body: m.Body, GroupID: m.Group, DeduplicationID: m.DeduplicationID}}
	if len(m.Attributes) > 0 {
		logged.Message.Attributes = make(map[string]lint.Attribute, len(m.Attributes))
	}
	for name, value := range m.Attributes {
		logged.Message.Attributes[name] = lint.Attribute{DataType: "String", StringValue: value}
	}
	return logged, nil
}
