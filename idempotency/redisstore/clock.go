package redisstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// clocks has the largest times that a store has read from its servers, in microseconds.
// In a cluster each bucket (all key IDs with the same first twelve bits) has a separate
// time, because buckets are on different servers.
type clocks struct {
	largest []clock.Largest
	steps   atomic.Int64
}

func (c *clocks) of(bucket int64) *clock.Largest { return &c.largest[bucket%int64(len(c.largest))] }

// seen returns the largest time read so far from the server of a bucket (see bucketOf),
// as text for the scripts, or "" if no time was read.
func (c *clocks) seen(bucket int64) string {
	if us := c.of(bucket).Load(); us > 0 {
		return microsText(us)
	}
	return ""
}

// saw keeps the time in the parameter at, read from the bucket's server, if it is the
// largest time so far.
func (c *clocks) saw(bucket int64, at time.Time) { c.of(bucket).Raise(at.UnixMicro()) }

// watchClocks finds out whether all records can share one clock record, a Redis hash with
// the largest time. In a cluster each bucket needs a clock record, because scripts cannot
// use keys of several slots.
func (s *Store) watchClocks(ctx context.Context) error {
	s.clocks.largest = make([]clock.Largest, 1)
	_, cluster := s.client.(*redis.ClusterClient)
	if !cluster {
		// The client may be connected to one server of a cluster, or to a proxy.
		err := s.client.Eval(ctx, "return 1", []string{s.prefix + "idempotency-fence:{000}", s.clockName("")}).Err()
		if cluster = redis.HasErrorPrefix(err, "CROSSSLOT"); err != nil && !cluster {
			return fmt.Errorf("redisstore: open: %w", err)
		}
	}
	if cluster {
		s.clocks.largest = make([]clock.Largest, 1<<bucketBits)
	}
	return nil
}

// clockName returns the name of the Redis hash with the largest time of a server. In a
// cluster each bucket has such a hash, and the tag names the bucket; see bucketOf.
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
	s.clocks.saw(n.bucket, a.record.ReadAt)
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
