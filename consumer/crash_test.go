package consumer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
)

// One of 1,000 messages kills the process that handles it, and a supervisor restarts the
// process after a second. After eight crashes the message is parked. All other messages
// are handled, and the dead-letter queue stays empty.
func TestCrashLoop(t *testing.T) {
	for _, perReceive := range []int{1, 10} {
		t.Run(fmt.Sprintf("%d per receive", perReceive), func(t *testing.T) {
			bubble(t, 10, func(w *world) {
				for n := range 10 {
					for g := range 100 {
						w.send(fmt.Sprintf("g%d-", g), n)
					}
				}
				c := w.config(func(ctx context.Context, m consumer.Message[job]) error {
					if m.Payload.Group == "g50-" && m.Payload.N == 4 {
						return killSelf(ctx)
					}
					time.Sleep(100 * time.Millisecond)
					if ctx.Value(processKey{}).(*process).killed.Load() {
						return errKilled
					}
					return nil
				})
				c.PerReceive = perReceive
				crashes := 0
				deadline := time.Now().Add(2 * time.Hour)
				for p := w.start(c); time.Now().Before(deadline); {
					select {
					case <-p.ended:
						crashes++
						time.Sleep(time.Second)
						p = w.start(c)
					case <-time.After(time.Until(deadline)):
						p.cancel()
						assert.NoError(w, <-p.ended)
					}
				}
				assert.Empty(w, left(w.queue))
				assert.Len(w, left(w.parking), 1, "parked")
				assert.Empty(w, left(w.dead), "dead-lettered")
				assert.Equal(w, 8, crashes)
				w.Logf("%d crashes, %d handled, most receives of a message %d", crashes, len(w.done), mostReceives(w.queue))
			})
		})
	}
}
