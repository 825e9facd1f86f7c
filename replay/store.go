package replay

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

type store struct {
	name   string
	store  idempotency.Store
	filter idempotency.Filter
}

// NewStore returns a source of the selected records of an idempotency store. An item has
// the body and the group of the operation's first execution, and no attributes. If the
// record's [idempotency.ExactHash] does not match them, the item has an Err and no message.
//
// An item has StatusDelivered if its operation succeeded, StatusPending if the operation
// failed, and StatusInDoubt otherwise.
//
// Items of one message group come in the order in which their operations were first
// claimed. A scan holds the keys of all selected records in memory.
func NewStore(name string, s idempotency.Store, f idempotency.Filter) Source {
	return &store{name, s, f}
}

// Name implements [Source].
func (s *store) Name() string { return s.name }

// Scan implements [Source]. A store yields records by key. Scan first reads all records
// without keeping bodies and sorts them by time, and then reads the records again for the
// bodies.
func (s *store) Scan(ctx context.Context) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		type stored struct {
			key            idempotency.Key
			created, fence int64
		}
		var found []stored
		for r, err := range s.store.Scan(ctx, s.filter) {
			if err != nil {
				yield(Item{}, fmt.Errorf("replay: %s: %w", s.name, err))
				return
			}
			found = append(found, stored{r.Key, r.Created.UnixMicro(), r.Fence})
		}
		slices.SortFunc(found, func(a, b stored) int {
			return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.fence, b.fence))
		})
		const page = 256
		for len(found) > 0 {
			n := min(page, len(found))
			keys := make([]idempotency.Key, n)
			for i := range keys {
				keys[i] = found[i].key
			}
			found = found[n:]
			records, err := s.store.Lookup(ctx, keys...)
			if err != nil {
				yield(Item{}, fmt.Errorf("replay: %s: %w", s.name, err))
				return
			}
			for _, r := range records {
				// the record may have changed since the first read and not match now
				if s.filter.Match(r) && !yield(s.item(r), nil) {
					return
				}
			}
		}
	}
}

// Fetch implements [Source].
func (s *store) Fetch(ctx context.Context, positions []string) ([]Item, error) {
	keys := make([]idempotency.Key, len(positions))
	for i, position := range positions {
		var err error
		if keys[i], err = parseKey(position); err != nil {
			return nil, fmt.Errorf("replay: %s: %w", s.name, err)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	records, err := s.store.Lookup(ctx, keys...)
	if err != nil {
		return nil, fmt.Errorf("replay: %s: %w", s.name, err)
	}
	out := make([]Item, len(records))
	for i, r := range records {
		out[i].Position = positions[i]
		if r.Status != idempotency.StatusAbsent {
			out[i] = s.item(r)
		}
	}
	return out, nil
}

func (s *store) item(r idempotency.Record) Item {
	it := Item{Position: formatKey(r.Key), Group: r.Group, MessageID: r.Result.MessageID}
	it.Sent = SentBetween{From: r.Created}
	switch r.Status {
	case idempotency.StatusSucceeded:
		it.Status = StatusDelivered
	case idempotency.StatusFailed:
		it.Status, it.Sent = StatusPending, SentBetween{}
	case idempotency.StatusRunning:
		it.Status = StatusInDoubt
		it.Sent.From = r.DoubtSince
	case idempotency.StatusAbsent:
	}
	if it.Status != StatusPending {
		// A record does not have the time at which its operation ended. Use the end of the
		// lease. This time is too early if the operation took longer than its lease.
		it.Sent.To = later(r.LeaseUntil, it.Sent.From)
	}
	if len(r.Body) == 0 {
		it.Err = errors.New("it was stored without a body")
		return it
	}
	if r.ExactHash != (idempotency.ExactHash{}) && r.ExactHash != idempotency.ExactHashOf(r.Body, r.Group) {
		it.Err = errors.New("the seal is not that of the body and the group")
		return it
	}
	if it.Message, it.Err = messageOf(string(r.Body), r.Group); it.Err != nil {
		return it
	}
	if d := r.Dataset; d.ID != "" {
		it.Message.Dataset = &sqsfifo.Dataset{ID: d.ID, Version: d.Version, SourceURI: d.SourceURI, ArtifactChecksum: d.ArtifactChecksum, CARELabel: d.CARELabel}
	}
	return it
}

// formatKey returns the key as the text for Item.Position, with the key's three parts in
// base64.
func formatKey(k idempotency.Key) string {
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(k.Scope)) + "." + enc([]byte(k.Operation)) + "." + enc([]byte(k.Value))
}

func parseKey(position string) (k idempotency.Key, err error) {
	parts := strings.Split(position, ".")
	if len(parts) != 3 {
		return k, fmt.Errorf("%q is not a position of a store", position)
	}
	for i, to := range []*string{&k.Scope, &k.Operation, &k.Value} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			return k, fmt.Errorf("%q is not a position of a store: %w", position, err)
		}
		*to = string(text)
	}
	return k, nil
}
