package dynamostore

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Lookup implements [idempotency.Store] with strongly consistent reads, 16 at a time.
func (s *Store) Lookup(ctx context.Context, keys ...idempotency.Key) ([]idempotency.Record, error) {
	ids := make([]idempotency.KeyID, len(keys))
	for i, k := range keys {
		if err := k.Check(); err != nil {
			return nil, err
		}
		ids[i] = k.ID()
	}
	records, err := s.read(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("dynamostore: lookup: %w", err)
	}
	for i := range records {
		if records[i].Status == idempotency.StatusAbsent {
			records[i] = idempotency.Record{Key: keys[i], ReadAt: records[i].ReadAt}
		}
	}
	return records, nil
}

func (s *Store) read(ctx context.Context, ids []idempotency.KeyID) ([]idempotency.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	records, errs := make([]idempotency.Record, len(ids)), make([]error, len(ids))
	concurrently(len(ids), func(i int) {
		records[i], _, errs[i] = s.get(ctx, ids[i])
		records[i].ReadAt = s.now()
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return records, nil
}

// Scan implements [idempotency.Store]. First it collects all record IDs, with a scan of
// the whole table and 32 bytes of memory per ID. Then it reads the records one by one, so
// Scan consumes the table's read capacity twice.
//
// Scan may miss records created during the scan.
func (s *Store) Scan(ctx context.Context, f idempotency.Filter) iter.Seq2[idempotency.Record, error] {
	return func(yield func(idempotency.Record, error) bool) {
		ids, err := s.ids(ctx)
		if err != nil {
			yield(idempotency.Record{}, fmt.Errorf("dynamostore: scan: %w", err))
			return
		}
		for page := range slices.Chunk(ids, idempotency.MaxBatch) {
			records, err := s.read(ctx, page)
			if err != nil {
				yield(idempotency.Record{}, fmt.Errorf("dynamostore: scan: %w", err))
				return
			}
			for _, r := range records {
				if f.Match(r) && !yield(r, nil) {
					return
				}
			}
		}
	}
}

// ids returns the sorted IDs of all records.
func (s *Store) ids(ctx context.Context) (all []idempotency.KeyID, err error) {
	pages := dynamodb.NewScanPaginator(s.client, &dynamodb.ScanInput{
		TableName: &s.table, ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String("key_id"),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, it := range page.Items {
			p := parser{item: it}
			// Skip items that are not records but counters for fences: their key_id is
			// a name such as "fence:3fa".
			if id, ok := parseID(p.text("key_id")); ok {
				all = append(all, id)
			}
		}
	}
	slices.SortFunc(all, func(a, b idempotency.KeyID) int { return bytes.Compare(a[:], b[:]) })
	return all, nil
}
