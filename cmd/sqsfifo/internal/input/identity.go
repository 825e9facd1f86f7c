package input

import (
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// identity reads the dedupe key, the time and the event ID from the members of an event.
// The flags --key, --time and --event-id select the members. The group stays empty.
func (b *Builder) identity(event any) (sqsfifo.Identity, error) {
	var id sqsfifo.Identity
	var err error
	if id.DedupeKey, err = b.key.of(event); err != nil {
		return id, fmt.Errorf("--key: %w", err)
	}
	text, err := b.text("--time", event)
	if err != nil {
		return id, err
	}
	if id.Time, err = parseTime(text, b.spec.TimeFormat); err != nil {
		return id, fmt.Errorf("--time: %w", err)
	}
	if b.spec.EventID != "" {
		text, err := b.text("--event-id", event)
		if err != nil {
			return id, err
		}
		if id.EventID, err = uuid.Parse(text); err != nil {
			return id, fmt.Errorf("--event-id: %q: %w", text, err)
		}
	}
	return id, nil
}

func parseTime(text, format string) (time.Time, error) {
	switch format {
	case "unix", "unixms":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return time.Time{}, fmt.Errorf("%q is not a whole number, which --time-format %s asks for", text, format)
		}
		if format == "unix" {
			return time.Unix(n, 0).UTC(), nil
		}
		return time.UnixMilli(n).UTC(), nil
	case "date":
		t, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return t, fmt.Errorf("%q is not a date such as 2025-12-04", text)
		}
		return t, nil
	default:
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return t, fmt.Errorf("%q is not a time such as 2025-12-04T12:00:00Z; --time-format has other forms", text)
		}
		return t, nil
	}
}
