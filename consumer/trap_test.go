package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
)

// Some messages of a group always fail, and the queue has a redrive policy. The consumer
// parks exactly these messages, handles the others and receives each message once. Repeated
// receives would move healthy messages to the dead-letter queue.
func TestTrap(t *testing.T) {
	for _, tc := range []struct {
		perReceive, maxReceives, poison int
		handled, parked                 int
	}{
		{perReceive: 1, maxReceives: 3, poison: 1, handled: 9, parked: 1},
		{perReceive: 10, maxReceives: 3, poison: 1, handled: 9, parked: 1},
		{perReceive: 10, maxReceives: 6, poison: 2, handled: 8, parked: 2},
		{perReceive: 10, maxReceives: 1, poison: 9, handled: 1, parked: 9},
	} {
		t.Run(fmt.Sprintf("%d per receive, maxReceiveCount %d, %d poison", tc.perReceive, tc.maxReceives, tc.poison), func(t *testing.T) {
			bubble(t, tc.maxReceives, func(w *world) {
				w.send("g", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
				c := w.config(func(_ context.Context, m consumer.Message[job]) error {
					if m.Payload.N <= tc.poison {
						return errors.New("poison")
					}
					return nil
				})
				c.PerReceive = tc.perReceive
				w.run(c, time.Hour)
				assert.Len(w, w.done, tc.handled)
				assert.Len(w, left(w.parking), tc.parked)
				assert.Empty(w, left(w.dead), "dead-lettered")
				assert.Empty(w, left(w.queue))
				assert.Equal(w, 1, mostReceives(w.queue))
				assert.Len(w, w.calls, tc.handled+5*tc.poison)
			})
		})
	}
}
