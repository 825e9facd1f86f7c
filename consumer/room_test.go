package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
)

// Blocked groups leave room for receives: 100 groups of ten messages are blocked, or one group
// at the smallest permitted limits. The other groups are handled.
func TestBlockedGroupsLeaveRoom(t *testing.T) {
	for name, change := range map[string]func(c *consumer.Config[job]) (blocked int){
		"100 groups":        func(*consumer.Config[job]) int { return 100 },
		"least of Messages": func(c *consumer.Config[job]) int { c.Messages = 10; return 1 },
		"least of Bytes":    func(c *consumer.Config[job]) int { c.Bytes = 10 << 20; return 1 },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 0, func(w *world) {
				c := w.config(func(_ context.Context, m consumer.Message[job]) error {
					if m.Group[0] == 'x' {
						return consumer.Permanent(errors.New("bad"))
					}
					return nil
				})
				c.Failure.Action = consumer.ActionBlock
				groups := change(&c)
				for g := range groups {
					for n := range 10 {
						if groups > 1 || n == 0 {
							w.send(fmt.Sprint("x", g, "-"), n)
						}
					}
				}
				running, stop := w.running(c)
				time.Sleep(time.Minute)
				for g := range 20 {
					w.send(fmt.Sprint("g", g, "-"), 1)
				}
				time.Sleep(time.Minute)
				assert.Len(w, w.noted(&w.done), 20)
				assert.Equal(w, groups, running.Stats().Blocked)
				assert.False(w, running.Stats().NoRoom)
				require.NoError(w, stop())
			})
		})
	}
}

// Blocked groups fill the limit of messages. Stats, Blocked and the log say so.
func TestNoRoom(t *testing.T) {
	bubble(t, 0, func(w *world) {
		c := w.config(func(context.Context, consumer.Message[job]) error { return consumer.Permanent(errors.New("bad")) })
		c.Failure.Action, c.PerReceive, c.Messages = consumer.ActionBlock, 1, 2
		var log bytes.Buffer
		c.Telemetry.Logger = slog.New(slog.NewTextHandler(&log, nil))
		defer func() { assert.Contains(w, log.String(), "the consumer receives nothing") }()
		for g := range 3 {
			w.send(fmt.Sprint("g", g, "-"), 1)
		}
		running, stop := w.running(c)
		time.Sleep(time.Minute)
		assert.True(w, running.Stats().NoRoom)
		for _, g := range running.Blocked() {
			assert.True(w, g.NoRoom)
		}
		require.NoError(w, running.ParkHead(w.Context(), running.Blocked()[0].Group, running.Blocked()[0].MessageID))
		time.Sleep(time.Minute)
		assert.True(w, running.Stats().NoRoom)
		require.NoError(w, running.ParkHead(w.Context(), running.Blocked()[0].Group, running.Blocked()[0].MessageID))
		time.Sleep(time.Minute)
		assert.False(w, running.Stats().NoRoom)
		assert.False(w, running.Blocked()[0].NoRoom)
		require.NoError(w, stop())
	})
}
