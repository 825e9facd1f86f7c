package sqsfifo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/dispatch"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/ledger"
)

// operatorLog writes the records that Telemetry.Logger describes. Its methods never
// block and may be called under any lock: the handler runs in a goroutine of the
// ledger. A nil log writes nothing.
type operatorLog struct {
	records *ledger.Queue[slog.Record]
	queue   slog.Attr
	began   time.Time

	throttled, lost onceAMinute
}

// mostLogRecords may wait for a handler; those beyond are dropped.
const mostLogRecords = 1000

func newOperatorLog(l *slog.Logger, queueURL string) *operatorLog {
	if l == nil {
		return nil
	}
	handler := l.Handler()
	write := func(r slog.Record) error {
		if !handler.Enabled(context.Background(), r.Level) {
			return nil
		}
		return handler.Handle(context.Background(), r)
	}
	return &operatorLog{
		records: ledger.New(write, mostLogRecords, func() {}),
		queue:   slog.String("queue", queueURL),
		began:   time.Now(),
	}
}

func (l *operatorLog) add(level slog.Level, message string, attributes ...slog.Attr) {
	r := slog.NewRecord(time.Now(), level, "sqsfifo: "+message, 0)
	r.AddAttrs(l.queue)
	r.AddAttrs(attributes...)
	l.records.Add(r)
}

// paused reports that an event paused its message group.
func (l *operatorLog) paused(group string, p *dispatch.Pause) {
	if l == nil {
		return
	}
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
	l.add(slog.LevelWarn, "message group paused: an event of it failed", attributes...)
}

// failed reports an outcome that an operator must know: a reused key, or an event
// that was changed on its way.
func (l *operatorLog) failed(s *submission, err error) {
	if l == nil {
		return
	}
	var conflict *ConflictError
	var altered *AlteredError
	switch {
	case errors.As(err, &conflict):
		l.add(slog.LevelWarn, "dedupe key used for another message", append(s.logged(),
			slog.String("reuse", conflict.Reuse.String()), slog.Time("first_sent", conflict.FirstSent))...)
	case errors.As(err, &altered) && altered.Attempts > 0:
		l.add(slog.LevelError, "event changed on its way to SQS", append(s.logged(), slog.String("field", altered.Field))...)
	}
}

// drifted reports that the store has an event in another form.
func (l *operatorLog) drifted(s *submission) {
	if l != nil {
		l.add(slog.LevelWarn, "event is in the store with other bytes or another message group, which count", s.logged()...)
	}
}

// throttle reports that SQS throttles: the first time, and then once a minute.
func (l *operatorLog) throttle(code string) {
	if l != nil && l.throttled.isDue(time.Since(l.began)) {
		l.add(slog.LevelWarn, "SQS throttles", slog.String("code", code))
	}
}

// recordLost reports a lost provenance record: the first one, and then once a minute.
func (l *operatorLog) recordLost() {
	if l != nil && l.lost.isDue(time.Since(l.began)) {
		l.add(slog.LevelError, "provenance records lost: the sink fails or is too slow")
	}
}

// flush waits until the handler has what was added.
func (l *operatorLog) flush(ctx context.Context) error {
	if l == nil {
		return nil
	}
	if err := l.records.Flush(ctx); err != nil {
		return fmt.Errorf("sqsfifo: close: log records still to be written: %w", err)
	}
	return nil
}

// onceAMinute lets something pass once a minute. The zero value lets the first one pass.
type onceAMinute struct{ next atomic.Int64 }

func (r *onceAMinute) isDue(now time.Duration) bool {
	next := r.next.Load()
	return int64(now) >= next && r.next.CompareAndSwap(next, int64(now+time.Minute))
}

// logged names the event of a submission.
func (s *submission) logged() []slog.Attr {
	attributes := []slog.Attr{slog.String("message_group", s.msg.Group), slog.String("event_id", s.msg.EventID.String())}
	if s.rules.showKeys {
		attributes = append(attributes, slog.String("dedupe_key", s.msg.DedupeKey))
	}
	return attributes
}
