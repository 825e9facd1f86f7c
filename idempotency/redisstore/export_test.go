package redisstore

import (
	"context"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// OpenWithOffset opens a store whose clock is the server's clock plus the seconds stored
// at a Redis key.
func OpenWithOffset(ctx context.Context, c Config, key string) (*Store, error) {
	return open(ctx, c, `local function clock()
  local t = redis.call('TIME')
  local offset = tonumber(redis.call('GET', '`+key+`') or '0')
  return string.format('%012d%06d', t[1] + offset, t[2])
end
`)
}

// RecordName returns the Redis key of a record.
func RecordName(s *Store, k idempotency.Key) string { return s.nameOf(k).record }

// FenceName returns the Redis key of the counter for the fences of a record. All records
// of the same bucket share this counter.
func FenceName(s *Store, k idempotency.Key) string { return s.nameOf(k).fence }

// WatchBuckets makes the store detect clock steps for each bucket of records separately,
// as in a cluster.
func WatchBuckets(s *Store) { s.clocks.largest = make([]clock.Largest, 1<<bucketBits) }

// WatchesBuckets reports whether s has a clock record for each bucket, as in a cluster.
func WatchesBuckets(s *Store) bool { return len(s.clocks.largest) > 1 }
