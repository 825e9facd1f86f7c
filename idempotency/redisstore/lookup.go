package redisstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Lookup implements [idempotency.Store] with one round trip per 64 keys.
func (s *Store) Lookup(ctx context.Context, keys ...idempotency.Key) ([]idempotency.Record, error) {
	all := make([]names, len(keys))
	for i, k := range keys {
		if err := k.Check(); err != nil {
			return nil, err
		}
		all[i] = s.nameOf(k)
	}
	records, err := s.read(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("redisstore: lookup: %w", err)
	}
	for i := range records {
		if records[i].Status == idempotency.StatusAbsent {
			records[i] = idempotency.Record{Key: keys[i], ReadAt: records[i].ReadAt}
		}
	}
	return records, nil
}

func (s *Store) read(ctx context.Context, all []names) ([]idempotency.Record, error) {
	return await(ctx, s, func() ([]idempotency.Record, error) {
		records := make([]idempotency.Record, 0, len(all))
		for page := range slices.Chunk(all, idempotency.MaxBatch) {
			calls := make([]call, len(page))
			for i, n := range page {
				calls[i] = call{keys: []string{n.record, n.clock}, args: []any{s.clocks.seen(n.bucket)}}
			}
			answers, err := s.run(ctx, s.scripts.read, calls)
			if err != nil {
				return nil, err
			}
			for i, a := range answers {
				s.clocks.remember(page[i].bucket, a.record.ReadAt)
				records = append(records, a.record)
			}
		}
		return records, nil
	})
}

// place is the key ID and Redis key of a record.
type place struct {
	id   idempotency.KeyID
	name string
}

// Scan implements [idempotency.Store]. First it collects the names of all records, with a
// SCAN of the whole database and about 150 bytes of memory per name. Then it reads the
// records in pages of 64.
//
// Scan may miss records created during the scan. In a cluster it may also miss records
// whose slot moves to another server meanwhile.
func (s *Store) Scan(ctx context.Context, f idempotency.Filter) iter.Seq2[idempotency.Record, error] {
	return func(yield func(idempotency.Record, error) bool) {
		places, err := await(ctx, s, func() ([]place, error) { return s.places(ctx, f.Operation) })
		if err != nil {
			yield(idempotency.Record{}, fmt.Errorf("redisstore: scan: %w", err))
			return
		}
		for page := range slices.Chunk(inOrder(places), idempotency.MaxBatch) {
			all := make([]names, len(page))
			for i, p := range page {
				all[i] = names{record: p.name, clock: s.clockName(p.id.String()[:bucketBits/4]), bucket: bucketOf(p.id)}
			}
			records, err := s.read(ctx, all)
			if err != nil {
				yield(idempotency.Record{}, fmt.Errorf("redisstore: scan: %w", err))
				return
			}
			for i, r := range records {
				// The pattern of SCAN may also match records of stores with other
				// prefixes. Skip such records.
				ours := r.Status != idempotency.StatusAbsent && s.nameOf(r.Key).record == page[i].name
				if ours && f.Match(r) && !yield(r, nil) {
					return
				}
			}
		}
	}
}

// inOrder sorts places and drops repetitions, because SCAN may return a name several
// times.
func inOrder(places []place) []place {
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.name, b.name))
	})
	return slices.Compact(places)
}

// places returns the key IDs and Redis keys of the operation's records, or of all records
// if the parameter `operation` is empty.
func (s *Store) places(ctx context.Context, operation string) (all []place, err error) {
	pattern := glob.Replace(s.prefix) + "idempotency:"
	if operation != "" {
		pattern += glob.Replace(braces.Replace(operation)) + ":"
	} else {
		pattern += "*:"
	}
	pattern += "{*"
	err = s.primaries(ctx, func(ctx context.Context, node *redis.Client) error {
		names := node.ScanType(ctx, 0, pattern, 1000, "hash").Iterator()
		for names.Next(ctx) {
			if id, ok := idOf(names.Val()); ok {
				all = append(all, place{id, names.Val()})
			}
		}
		return names.Err()
	})
	return all, err
}

// glob escapes the special characters of SCAN patterns.
var glob = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)
