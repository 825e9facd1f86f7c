package sink_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/sink"
)

func TestLog(t *testing.T) {
	var out bytes.Buffer
	untimed := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	handler := slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: untimed})
	log := sink.NewLog(slog.New(handler), "consumer", "https://queue.fifo")
	log.Add(slog.LevelWarn, "receive failed", slog.Int("failures", 2))
	log.Add(slog.LevelInfo, "below the handler's level")
	require.NoError(t, log.Flush(context.Background()))
	assert.Equal(t, "level=WARN msg=\"consumer: receive failed\" queue=https://queue.fifo failures=2\n", out.String())
}

func TestANilLogWritesNothing(t *testing.T) {
	log := sink.NewLog(nil, "sqsfifo", "")
	require.Nil(t, log)
	log.Add(slog.LevelError, "lost")
	assert.NoError(t, log.Flush(context.Background()))
	assert.False(t, log.IsDue(&sink.OnceAMinute{}))
}

func TestOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := sink.NewLog(slog.New(slog.DiscardHandler), "sqsfifo", "")
		var kind, other sink.OnceAMinute
		assert.True(t, log.IsDue(&kind), "first")
		assert.False(t, log.IsDue(&kind))
		assert.True(t, log.IsDue(&other), "another kind")
		time.Sleep(time.Minute - time.Nanosecond)
		assert.False(t, log.IsDue(&kind))
		time.Sleep(time.Nanosecond)
		assert.True(t, log.IsDue(&kind), "after a minute")
		assert.False(t, log.IsDue(&kind))
	})
}
