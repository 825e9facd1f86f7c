package consumer

import (
	"context"
	"log/slog"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/sink"
)

// mostLogRecords may wait for a slow handler; later ones are dropped.
const mostLogRecords = 1000

// consumerLog writes log records to Telemetry.Logger in a separate goroutine. Its methods
// never block. A nil *consumerLog writes nothing.
type consumerLog struct {
	records *sink.Queue[slog.Record]
	queue   slog.Attr
}

func newLog(l *slog.Logger, queueURL string) *consumerLog {
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
	return &consumerLog{sink.New(write, mostLogRecords, func() {}), slog.String("queue", queueURL)}
}

func (l *consumerLog) add(level slog.Level, message string, attributes ...slog.Attr) {
	if l == nil {
		return
	}
	r := slog.NewRecord(time.Now(), level, "consumer: "+message, 0)
	r.AddAttrs(l.queue)
	r.AddAttrs(attributes...)
	l.records.Add(r)
}

// flush waits until the handler has all records, at most a second.
func (l *consumerLog) flush() {
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.records.Flush(ctx) // the rest is dropped with the process
}
