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
// process after a second. With Deliveries 8 the message is parked after eight crashes.
// Without Deliveries SQS moves it to the dead-letter queue after ten. All other messages are
// handled.
func TestCrashLoop(t *testing.T) {
	killers := []job{{"g50-", 4}}
	if !testing.Short() {
		for g := range 20 {
			killers = append(killers, job{fmt.Sprintf("g%d-", 5*g), g % 10})
		}
	}
	for _, killer := range killers {
		for _, perReceive := range []int{1, 10} {
			for _, deliveries := range []int{8, 0} {
				t.Run(fmt.Sprintf("%v, %d per receive, Deliveries %d", killer, perReceive, deliveries), func(t *testing.T) {
					crashLoop(t, killer, perReceive, deliveries)
				})
			}
		}
	}
}

func crashLoop(t *testing.T, killer job, perReceive, deliveries int) {
	bubble(t, 10, func(w *world) {
		for n := range 10 {
			for g := range 100 {
				w.send(fmt.Sprintf("g%d-", g), n)
			}
		}
		c := w.config(func(ctx context.Context, m consumer.Message[job]) error {
			if m.Payload == killer {
				return killSelf(ctx)
			}
			time.Sleep(100 * time.Millisecond)
			if ctx.Value(processKey{}).(*process).killed.Load() {
				return errKilled
			}
			return nil
		})
		c.PerReceive, c.Failure.Deliveries = perReceive, deliveries
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
		parked, dead, want := 1, 0, 8
		if deliveries == 0 {
			parked, dead, want = 0, 1, 10
		}
		assert.Len(w, left(w.parking), parked, "parked")
		assert.Len(w, left(w.dead), dead, "dead-lettered")
		assert.Equal(w, want, crashes)
		w.Logf("%d crashes, %d handled, most receives of a message %d", crashes, len(w.done), mostReceives(w.queue))
	})
}
