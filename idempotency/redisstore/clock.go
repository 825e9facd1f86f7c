package redisstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// clocks has the largest times that the store has read from the clocks of its servers. If
// a clock later shows a smaller time, the clock was set back.
type clocks struct {
	// largest has one element, or in a cluster one for each bucket: buckets are on
	// servers with different clocks.
	largest []clock.Largest
	steps   atomic.Int64 // number of detected steps back
}

func (c *clocks) of(bucket int64) *clock.Largest { return &c.largest[bucket%int64(len(c.largest))] }

// seen returns the largest time read so far from the server with the given bucket of
// records, in the text format of the Lua scripts. It returns "" if no time was read.
func (c *clocks) seen(bucket int64) string {
	if us := c.of(bucket).Load(); us > 0 {
		return microsText(us)
	}
	return ""
}

// remember keeps a time read from the bucket's server, if it is the largest so far.
func (c *clocks) remember(bucket int64, now time.Time) { c.of(bucket).Raise(now.UnixMicro()) }

// watchClocks prepares the detection of clocks that are set back. A cluster has a clock
// record for each bucket, because a script can only use keys of one cluster slot.
func (s *Store) watchClocks(ctx context.Context) error {
	s.clocks.largest = make([]clock.Largest, 1)
	_, cluster := s.client.(*redis.ClusterClient)
	if !cluster {
		// The client may reach a cluster through a proxy. A cluster refuses a script over
		// two slots with CROSSSLOT. The slots of these names differ with any prefix.
		err := s.client.Eval(ctx, "return 1", []string{s.prefix + "idempotency-fence:{000}", s.prefix + "idempotency-fence:{001}"}).Err()
		if cluster = redis.HasErrorPrefix(err, "CROSSSLOT"); err != nil && !cluster {
			return fmt.Errorf("redisstore: open: %w", err)
		}
	}
	if cluster {
		s.clocks.largest = make([]clock.Largest, 1<<bucketBits)
	}
	return nil
}

// clockName returns the name of the clock record, the Redis hash with the largest time
// that the server's clock has shown. In a cluster each bucket has a clock record, and the
// parameter `tag` is the bucket in hexadecimal.
func (s *Store) clockName(tag string) string {
	if len(s.clocks.largest) == 1 {
		return s.prefix + "idempotency-clock"
	}
	return s.prefix + "idempotency-clock:{" + tag + "}"
}

// watchClock compares the server's time in a script's answer with the largest time so
// far, and keeps the larger one. If the script detected a backward clock step, watchClock
// counts and logs the step.
func (s *Store) watchClock(n names, a answer) {
	s.clocks.remember(n.bucket, a.record.ReadAt)
	if a.stepped.IsZero() {
		return
	}
	s.clocks.steps.Add(1)
	s.logger.Error("redisstore: the clock of the server was set back; operations in progress are unresolved unless their claimants finish them",
		"by", a.stepped.Sub(a.record.ReadAt), "clock", n.clock)
}

// Stats has the counts of a store since [Open].
type Stats struct {
	// ClockSteps counts how often a claim of this store found that a server's clock had
	// been set back. In a cluster one step may count several times, once in each bucket
	// of keys. See Limits in the package documentation.
	ClockSteps int64
}

// Stats returns the counts since [Open].
func (s *Store) Stats() Stats { return Stats{ClockSteps: s.clocks.steps.Load()} }
