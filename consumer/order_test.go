package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Each kind of call to SQS fails often. Groups run concurrently, each group in its order,
// and no two handlers of a group run at the same time.
func TestOrderUnderFaults(t *testing.T) {
	bubble(t, 0, func(w *world) {
		for n := range 30 {
			for g := range 8 {
				w.send(fmt.Sprintf("%c", 'a'+g), n)
			}
		}
		for i, f := range []sqstest.Fault{sqstest.LoseAnswer(), sqstest.DropRequest(), sqstest.Throttle(), sqstest.ServerError()} {
			for j, calls := range []sqstest.Action{sqstest.ActionReceive, sqstest.ActionDelete, sqstest.ActionVisibility} {
				w.queue.InjectRandomly(f.On(calls), 0.05, uint64(10*i+j))
			}
		}
		w.queue.InjectRandomly(sqstest.FailEntries("InternalFailure", smithy.FaultServer, nil).On(sqstest.ActionDelete), 0.05, 99)
		busy, most, running := map[string]bool{}, 0, 0
		c := w.config(func(_ context.Context, m consumer.Message[job]) error {
			w.mu.Lock()
			assert.False(w, busy[m.Group], "two handlers of group %s", m.Group)
			busy[m.Group] = true
			running++
			most = max(most, running)
			w.mu.Unlock()
			time.Sleep(50 * time.Millisecond)
			w.mu.Lock()
			busy[m.Group] = false
			running--
			w.mu.Unlock()
			return nil
		})
		w.run(c, time.Hour)
		last := map[byte]int{}
		for _, s := range w.done {
			var n int
			_, err := fmt.Sscanf(s[1:], "%d", &n)
			require.NoError(w, err)
			assert.Equal(w, last[s[0]], n, "group %c", s[0])
			last[s[0]] = n + 1
		}
		assert.Len(w, w.done, 240)
		assert.Equal(w, 8, most, "groups run concurrently")
		assert.Empty(w, left(w.queue))
	})
}

// The handler fails for the first message of a group. The consumer keeps the group's
// messages hidden and calls the handler again, so SQS delivers each message only once.
// Meanwhile other groups continue.
func TestRetryInHand(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.send("a", 1, 2, 3)
		w.send("b", 1)
		fails := 3
		c := w.config(func(_ context.Context, m consumer.Message[job]) error {
			if m.Payload == (job{"a", 1}) && fails > 0 {
				fails--
				assert.Equal(w, 3-fails, m.Attempt)
				assert.Equal(w, fails < 2, m.Repeated)
				return errors.New("not yet")
			}
			return nil
		})
		c.Groups = 1 // one handler at a time; group b is handled while group a waits for its next attempt
		c.Visibility, c.Failure.FirstBackoff, c.Failure.MaxBackoff = 30*time.Second, 10*time.Minute, 10*time.Minute
		running := w.run(c, time.Hour)
		assert.ElementsMatch(w, []string{"a1", "b1"}, w.calls[:2])
		assert.Equal(w, []string{"b1", "a1", "a2", "a3"}, w.done)
		assert.Equal(w, 1, mostReceives(w.queue))
		s := running.Stats()
		assert.EqualValues(w, 3, s.Failures)
		assert.EqualValues(w, 4, s.Deleted)
		assert.Zero(w, s.Messages)
		assert.Zero(w, s.Bytes)
	})
}

// The handler is called for a message only after SQS has confirmed the delete of the
// earlier message of its group.
func TestLaterWaitsForDelete(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("a", 1, 2)
		w.queue.Inject(sqstest.ServerError().On(sqstest.ActionDelete), 6)
		c := w.config(func(context.Context, consumer.Message[job]) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.done) == 1 {
				assert.Zero(w, w.queue.PendingFaults(), "the second message was handled before the delete of the first")
			}
			return nil
		})
		running := w.run(c, time.Minute)
		assert.Equal(w, []string{"a1", "a2"}, w.done)
		assert.EqualValues(w, 6, running.Stats().DeleteRetries)
	})
}

// If SQS denies a delete, Run ends with a DeniedError.
func TestDeniedDelete(t *testing.T) {
	for name, f := range map[string]sqstest.Fault{
		"entry": sqstest.FailEntries("AccessDenied", smithy.FaultClient, nil),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 0, func(w *world) {
				w.send("a", 1, 2)
				w.queue.InjectRandomly(f.On(sqstest.ActionDelete), 1, 1)
				began := time.Now()
				_, stop := w.running(w.config(nil))
				time.Sleep(time.Minute)
				err := stop()
				var denied *consumer.DeniedError
				require.ErrorAs(w, err, &denied)
				assert.Equal(w, "DeleteMessageBatch", denied.Operation)
				assert.Equal(w, "AccessDenied", denied.Code)
				assert.Equal(w, []string{"a1"}, w.done)
				assert.Equal(w, time.Minute, time.Since(began), "it ended before")
				assert.Zero(w, left(w.queue)[0].HiddenUntil, "released")
			})
		})
	}
}

// A handler runs for two hours with a visibility timeout of 30 s. SQS does not deliver
// its message a second time.
func TestLongHandler(t *testing.T) {
	bubble(t, 1, func(w *world) {
		w.send("a", 1, 2)
		c := w.config(func(ctx context.Context, _ consumer.Message[job]) error {
			select {
			case <-time.After(2 * time.Hour):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		c.Visibility, c.MaxHold, c.Timeout = 30*time.Second, 8*time.Hour, 3*time.Hour
		_, stopOther := w.running(c)
		w.run(c, 5*time.Hour)
		require.NoError(w, stopOther())
		assert.Equal(w, []string{"a1", "a2"}, w.calls)
		assert.Equal(w, []string{"a1", "a2"}, w.done)
		assert.Equal(w, 1, mostReceives(w.queue))
	})
}

// When calls that extend the visibility timeout fail, the handler's context ends with
// ErrLost before the message is handled again.
func TestStalledHandlerLearnsOfLoss(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("a", 1, 2)
		var lost, second time.Time
		first := true
		c := w.config(func(ctx context.Context, _ consumer.Message[job]) error {
			if !first {
				if second.IsZero() {
					second = time.Now()
				}
				return nil
			}
			first = false
			w.queue.InjectRandomly(sqstest.DropRequest().On(sqstest.ActionVisibility), 1, 1)
			<-ctx.Done()
			lost = time.Now()
			assert.ErrorIs(w, context.Cause(ctx), consumer.ErrLost)
			time.Sleep(time.Second)
			w.queue.ClearFaults()
			return ctx.Err()
		})
		c.Visibility, c.MaxHold, c.Timeout = 30*time.Second, 8*time.Hour, 3*time.Hour
		_, stopOther := w.running(c)
		running := w.run(c, time.Hour)
		require.NoError(w, stopOther())
		require.False(w, lost.IsZero())
		assert.GreaterOrEqual(w, second.Sub(lost), time.Second, "the second start came too early")
		assert.LessOrEqual(w, second.Sub(lost), 10*time.Second)
		assert.Equal(w, []string{"a1", "a2"}, w.done)
		assert.GreaterOrEqual(w, running.Stats().Lost, int64(0))
	})
}

// The messages in a consumer stay within Config.Messages and Config.Bytes, whatever their
// sizes.
func TestMemoryBounds(t *testing.T) {
	bubble(t, 0, func(w *world) {
		for n := range 200 {
			w.send(fmt.Sprintf("g%d-", n), n)
		}
		c := w.config(func(context.Context, consumer.Message[job]) error { return errors.New("later") })
		c.Messages, c.Bytes, c.Failure.Attempts = 30, 20<<20, 1000
		c.Failure.FirstBackoff, c.Failure.MaxBackoff = time.Hour, time.Hour
		running, stop := w.running(c)
		for range 100 {
			time.Sleep(time.Second)
			s := running.Stats()
			require.LessOrEqual(w, s.Messages, 30)
			require.LessOrEqual(w, s.Bytes, int64(20<<20))
		}
		assert.Greater(w, running.Stats().Messages, 20)
		require.NoError(w, stop())
	})
}
