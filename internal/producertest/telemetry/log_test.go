package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// logBuffer is a log that is safe for concurrent use.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Split(strings.TrimSuffix(b.text.String(), "\n"), "\n")
}

// without returns the lines that contain none of the texts.
func (b *logBuffer) without(texts ...string) []string {
	return slices.DeleteFunc(b.lines(), func(line string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(line, text) })
	})
}

func (b *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func TestOperatorLog(t *testing.T) {
	for _, showKeys := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			q := producertest.NewQueue(t, sqstest.Config{})
			var log logBuffer
			p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
				c.Telemetry.Logger, c.Telemetry.ShowDedupeKeys = log.logger(), showKeys
			})
			first := producertest.Event("p28r33", 1)
			receipt, err := p.Send(t.Context(), first)
			require.NoError(t, err)
			reused := first
			reused.Cloud = 99
			_, err = p.Send(t.Context(), reused)
			var conflict *sqsfifo.ConflictError
			require.ErrorAs(t, err, &conflict)
			assert.Equal(t, showKeys, strings.Contains(err.Error(), receipt.DedupeKey), err)
			doubt := producertest.InDoubt(t, p, q, sqstest.LoseAnswer())
			assert.Equal(t, showKeys, strings.Contains(doubt.Error(), doubt.DedupeKey), doubt)
			q.ClearFaults()
			q.Inject(sqstest.Throttle(), 3)
			_, err = p.Send(t.Context(), producertest.Event("other", 2)) // the request is throttled three times; only the first throttle is logged
			require.NoError(t, err)
			time.Sleep(time.Minute)
			q.Inject(sqstest.Throttle(), 1)
			_, err = p.Send(t.Context(), producertest.Event("other", 3)) // throttled again; logged, because the last log record is a minute old
			require.NoError(t, err)
			require.NoError(t, p.Close(t.Context()))

			key := func(k string) string {
				if showKeys {
					return " dedupe_key=" + k
				}
				return ""
			}
			name := "queue=" + q.URL()
			assert.Equal(t, []string{
				fmt.Sprintf(`level=WARN msg="sqsfifo: dedupe key used for another message" %s message_group=p28r33 event_id=%v%s reuse=conflict first_sent=%s`,
					name, conflict.EventID, key(receipt.DedupeKey), conflict.FirstSent.Format("2006-01-02T15:04:05.000Z07:00")),
				fmt.Sprintf(`level=WARN msg="sqsfifo: message group paused: an event of it failed" %s message_group=%s event_id=%v fate="in doubt" until=%s`,
					name, producertest.Sample.PathRow, doubt.EventID, doubt.ForgottenAt.Local().Format("2006-01-02T15:04:05.000Z07:00")),
				fmt.Sprintf(`level=WARN msg="sqsfifo: SQS throttles" %s code=RequestThrottled`, name),
				fmt.Sprintf(`level=WARN msg="sqsfifo: SQS throttles" %s code=RequestThrottled`, name),
			}, log.without("SQS fail", "SQS answers")) // TestOutage checks the records left out here
		})
	}
}

// handler is a misbehaving slog.Handler.
type handler func(slog.Record) error

func (handler) Enabled(context.Context, slog.Level) bool { return true }

func (h handler) Handle(_ context.Context, r slog.Record) error { return h(r) }

func (h handler) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h handler) WithGroup(string) slog.Handler { return h }

// A handler that blocks, panics, ends its goroutine or sends an event delays no event.
func TestLogHandlerThatMisbehaves(t *testing.T) {
	for name, do := range map[string]func(p *sqsfifo.Producer[producertest.Scene], release chan struct{}){
		"blocks": func(_ *sqsfifo.Producer[producertest.Scene], release chan struct{}) { <-release },
		"panics": func(*sqsfifo.Producer[producertest.Scene], chan struct{}) { panic("handler") },
		"exits":  func(*sqsfifo.Producer[producertest.Scene], chan struct{}) { runtime.Goexit() },
		"sends": func(p *sqsfifo.Producer[producertest.Scene], _ chan struct{}) {
			p.Stats()
			p.ResumeAll()
			_, _ = p.Send(context.Background(), producertest.Event("from the handler", 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := producertest.NewQueue(t, sqstest.Config{})
				release := make(chan struct{})
				var p *sqsfifo.Producer[producertest.Scene]
				p = producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
					c.Telemetry.Logger = slog.New(handler(func(slog.Record) error { do(p, release); return nil }))
				})
				for i := range 20 {
					q.Inject(sqstest.Throttle(), 1)
					_, err := p.Send(t.Context(), producertest.Event("a", i))
					require.NoError(t, err)
					time.Sleep(time.Minute)
				}
				producertest.InDoubt(t, p, q, sqstest.LoseAnswer())
				if name == "blocks" {
					over, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					require.ErrorIs(t, p.Close(over), context.DeadlineExceeded, "it says that records are still to be written")
				}
				close(release)
				require.NoError(t, p.Close(t.Context()))
			})
		})
	}
}

func TestLostProvenanceIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		var log logBuffer
		p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Telemetry.Logger = log.logger()
			c.Telemetry.Provenance = func(sqsfifo.ProvenanceRecord) error { return io.ErrShortWrite }
		})
		for _, s := range producertest.Scenes(3, 1) {
			_, err := p.Send(t.Context(), s)
			require.NoError(t, err)
		}
		var lost *sqsfifo.ProvenanceError
		require.ErrorAs(t, p.Close(t.Context()), &lost)
		assert.EqualValues(t, 3, lost.Lost)
		require.Len(t, log.lines(), 1, "once a minute")
		assert.Contains(t, log.lines()[0], "provenance records lost")
		assert.True(t, errors.Is(lost, io.ErrShortWrite))
	})
}
