package sink

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// mostLogRecords is the number of log records that may wait for a slow handler. Further
// records are dropped.
const mostLogRecords = 1000

// Log writes log records to a handler that may be slow, fail or block. Add never blocks,
// and its caller may hold any lock. A nil Log writes nothing.
type Log struct {
	records *Queue[slog.Record]
	prefix  string
	queue   slog.Attr
	began   time.Time
}

// NewLog returns a log for one queue. Each message starts with the text in the parameter
// `prefix` and ": ". With a nil logger NewLog returns nil.
func NewLog(logger *slog.Logger, prefix, queueURL string) *Log {
	if logger == nil {
		return nil
	}
	handler := logger.Handler()
	write := func(r slog.Record) error {
		if !handler.Enabled(context.Background(), r.Level) {
			return nil
		}
		return handler.Handle(context.Background(), r)
	}
	return &Log{
		records: New(write, mostLogRecords, func() {}),
		prefix:  prefix + ": ",
		queue:   slog.String("queue", queueURL),
		began:   time.Now(),
	}
}

// Add queues one record for the handler.
func (l *Log) Add(level slog.Level, message string, attributes ...slog.Attr) {
	if l == nil {
		return
	}
	r := slog.NewRecord(time.Now(), level, l.prefix+message, 0)
	r.AddAttrs(l.queue)
	r.AddAttrs(attributes...)
	l.records.Add(r)
}

// Flush waits until the handler has taken all added records, or until the context ends.
// If the context ends, Flush returns the context's cause.
func (l *Log) Flush(ctx context.Context) error {
	if l == nil {
		return nil
	}
	return l.records.Flush(ctx)
}

// OnceAMinute permits one log record per minute. Each kind of log record needs a separate
// OnceAMinute. The zero value permits the first record.
type OnceAMinute struct{ next atomic.Int64 }

// IsDue reports whether a log record of this kind may be written now. After a call has
// returned true, IsDue returns false for this kind for a minute, on the monotonic clock.
// For a nil Log, IsDue returns false.
func (l *Log) IsDue(kind *OnceAMinute) bool {
	return l != nil && kind.IsDueAt(time.Since(l.began))
}

// IsDueAt is like [Log.IsDue], for a caller without a Log. The parameter `now` is the time
// since a fixed instant. All calls must use the same instant.
func (kind *OnceAMinute) IsDueAt(now time.Duration) bool {
	next := kind.next.Load()
	return int64(now) >= next && kind.next.CompareAndSwap(next, int64(now+time.Minute))
}
