package sqsfifo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/dispatch"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sink"
)

// operatorLog writes the records of Telemetry.Logger. Without a Logger, Log is nil and nothing
// is written.
type operatorLog struct {
	*sink.Log
	throttled, lost, withoutRecord sink.OnceAMinute
}

func (l *operatorLog) paused(group string, p *dispatch.Pause) {
	attributes := []slog.Attr{
		slog.String("message_group", group),
		slog.String("event_id", uuid.UUID(p.ID).String()),
		slog.String("fate", publicFate(p.Fate).String()),
	}
	if p.Code != "" {
		attributes = append(attributes, slog.String("code", p.Code))
	}
	if !p.Until.IsZero() {
		attributes = append(attributes, slog.Time("until", p.Until.Round(0)))
	}
	l.Add(slog.LevelWarn, "message group paused: an event of it failed", attributes...)
}

// eventFailed logs an event's error if an operator should know the error: a reused key,
// or an event altered in a request of this submission. With EnforcementWarn, the event with
// the reused key is sent.
func (l *operatorLog) eventFailed(s *submission, err error) {
	var conflict *ConflictError
	var altered *AlteredError
	switch {
	case errors.As(err, &conflict):
		l.Add(slog.LevelWarn, "dedupe key used for another message", append(s.logged(),
			slog.String("reuse", conflict.Reuse.String()), slog.Time("first_sent", conflict.FirstSent))...)
	case errors.As(err, &altered) && altered.Attempts > 0:
		l.Add(slog.LevelError, "event changed on its way to SQS", append(s.logged(), slog.String("field", altered.Field))...)
	}
}

// drifted logs that an event was submitted with another body or message group than
// Config.Store has recorded for the event. The producer uses the recorded body and group.
func (l *operatorLog) drifted(s *submission) {
	l.Add(slog.LevelWarn, "event is in the store with other bytes or another message group, which count", s.logged()...)
}

// throttle logs that SQS throttled a request: the first time, and then at most once a
// minute.
func (l *operatorLog) throttle(code string) {
	if l.IsDue(&l.throttled) {
		l.Add(slog.LevelWarn, "SQS throttles", slog.String("code", code))
	}
}

// recordLost logs that a provenance record was lost: the first time, and then at most
// once a minute.
func (l *operatorLog) recordLost() {
	if l.IsDue(&l.lost) {
		l.Add(slog.LevelError, "provenance records lost: the sink fails or is too slow")
	}
}

// notRecorded logs that SQS stored an event, but Config.Store did not record the event in
// time. It logs the first such event immediately, and later ones at most once a minute.
func (l *operatorLog) notRecorded() {
	if l.IsDue(&l.withoutRecord) {
		l.Add(slog.LevelError, "events are stored in SQS and not recorded in the store, which did not answer in time: their receipts say Unrecorded")
	}
}

// flush waits until the handler has taken all added records.
func (l *operatorLog) flush(ctx context.Context) error {
	if err := l.Flush(ctx); err != nil {
		return fmt.Errorf("sqsfifo: close: log records still to be written: %w", err)
	}
	return nil
}

// CallsFail logs that calls to a service fail. The parameter `neverAnswered` is true if the
// service has not answered this producer yet.
func (l *operatorLog) CallsFail(service string, neverAnswered bool, err error, failures int64, since time.Time) {
	if l.Log == nil { // without a logger, do not call err.Error: an error from a faulty store may panic there
		return
	}
	level, message := slog.LevelWarn, "calls to "+service+" fail and are retried"
	if neverAnswered {
		level, message = slog.LevelError, "calls to "+service+" fail, and none has been answered yet; check the configuration"
	}
	l.Add(level, message, slog.Int64("failures", failures), slog.Time("since", since.Round(0)), slog.String("error", err.Error()))
}

// Recovered logs the end of an outage.
func (l *operatorLog) Recovered(service string, failures int64, lasted time.Duration) {
	l.Add(slog.LevelInfo, service+" answers again", slog.Int64("failures", failures), slog.Duration("lasted", lasted))
}
