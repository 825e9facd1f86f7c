package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
	"github.com/kansas-frontier-matrix/sqsfifo/lab/bench/internal/meter"
)

// smallSize is the number of keys in the smaller store. In each store, the lookups ask
// repeatedly for the same smallSize keys, the working set.
const smallSize = 10000

// measureLookups measures a store with smallSize keys, and again after the store has n
// keys: the time to open the store, and the time to look up a key. Each lookup asks for 10
// random keys of the working set.
func measureLookups(name string, db *sql.DB, dialect sqlstore.Dialect, n int) {
	ctx := context.Background()
	meter.Check(sqlstore.Migrate(ctx, db, dialect))
	var took [2]time.Duration
	filled := 0
	for i, keys := range []int{smallSize, n} {
		fill(db, dialect, filled, keys)
		filled = keys
		start := time.Now()
		s, err := sqlstore.Open(ctx, sqlstore.Config{DB: db, Dialect: dialect})
		meter.Check(err)
		opened := time.Since(start)
		working := rand.Perm(keys)[:smallSize]
		// The first lookup mostly measures the disk or the system's cache.
		first := lookUp(s, slices.Collect(slices.Chunk(working, 10)))
		var batches [][]int
		for range 3000 {
			batch := make([]int, 10)
			for j := range batch {
				batch[j] = working[rand.IntN(smallSize)]
			}
			batches = append(batches, batch)
		}
		took[i] = lookUp(s, batches)
		fmt.Printf("%s: %d keys: open %v, lookup %v a key of the working set, first look %v\n", name, keys, opened.Round(time.Microsecond), took[i], first)
		meter.Check(s.Close())
	}
	fmt.Printf("%s: a lookup among %d keys takes %.2f times one among %d (at most 1.5 wanted)\n", name, n, float64(took[1])/float64(took[0]), smallSize)
}

// lookUp looks up each batch of keys and returns the median time per key.
func lookUp(s *sqlstore.Store, batches [][]int) time.Duration {
	var samples []float64
	for _, batch := range batches {
		keys := make([]idempotency.Key, len(batch))
		for j, i := range batch {
			keys[j] = filledKey(i)
		}
		start := time.Now()
		records, err := s.Lookup(context.Background(), keys...)
		samples = append(samples, float64(time.Since(start))/float64(len(keys)))
		meter.Check(err)
		for _, r := range records {
			if r.Status != idempotency.StatusSucceeded {
				meter.Check(fmt.Errorf("key %s is %v", r.Key.Value, r.Status))
			}
		}
	}
	return time.Duration(meter.Median(samples))
}

func filledKey(i int) idempotency.Key {
	return idempotency.Key{Scope: "bench", Operation: "fill", Value: fmt.Sprint(i)}
}

// otherColumns returns the SQL values of a row, without the columns key_id, scope,
// operation_type and key. The parameters are SQL for an empty binary value and for the
// body.
func otherColumns(empty, body string) string {
	return strings.NewReplacer("EMPTY", empty, "BODY", body).Replace(
		`1, 'bench/1', EMPTY, NULL, EMPTY, BODY, EMPTY, EMPTY, 'm', '1', 'succeeded', 'new', 0, NULL, 1, 1, 0, NULL, NULL, '', 0, NULL, '', '', '', '', '', 0, 'absent', NULL, NULL`)
}

// fill adds a key for each number i with from <= i < to. For SQLite, fill writes the keys
// in the order of their IDs, which is the fastest order.
func fill(db *sql.DB, dialect sqlstore.Dialect, from, to int) {
	body := strings.Repeat("a", 300)
	if dialect == sqlstore.PostgreSQL {
		part := func(text string) string {
			return fmt.Sprintf(`int8send(length(%[1]s)) || convert_to(%[1]s, 'UTF8')`, text)
		}
		// Drop the primary key, because it is faster to add it after all rows. Disable
		// autovacuum, because it could run during the measurement.
		exec := func(statement string) {
			_, err := db.Exec(statement)
			meter.Check(err)
		}
		exec(`ALTER TABLE idempotency_keys SET (autovacuum_enabled = false), DROP CONSTRAINT idempotency_keys_pkey`)
		// One long transaction would delay the sealing of ledger entries in all databases
		// of the server.
		const chunk = 250000
		for ; from < to; from += chunk {
			exec(fmt.Sprintf(`INSERT INTO idempotency_keys SELECT sha256(%s || %s || %s), 'bench', 'fill', convert_to(v, 'UTF8'), %s FROM (SELECT i::text AS v FROM generate_series(%d, %d) AS i) AS t`,
				part("'bench'"), part("'fill'"), part("v"), otherColumns(`''::bytea`, "convert_to('"+body+"', 'UTF8')"), from, min(from+chunk, to)-1))
		}
		exec(`ALTER TABLE idempotency_keys ADD PRIMARY KEY (key_id)`)
		exec(`ANALYZE idempotency_keys`)
		exec(`CHECKPOINT`)
		return
	}
	type row struct {
		id    idempotency.KeyID
		value int
	}
	rows := make([]row, 0, to-from)
	for i := from; i < to; i++ {
		rows = append(rows, row{filledKey(i).ID(), i})
	}
	slices.SortFunc(rows, func(a, b row) int { return bytes.Compare(a.id[:], b.id[:]) })
	tx, err := db.Begin()
	meter.Check(err)
	for chunk := range slices.Chunk(rows, 2000) {
		var list strings.Builder
		for i, r := range chunk {
			if i > 0 {
				list.WriteByte(',')
			}
			fmt.Fprintf(&list, `["%s","%d"]`, hex.EncodeToString(r.id[:]), r.value)
		}
		_, err := tx.Exec(`INSERT INTO idempotency_keys SELECT unhex(value ->> 0), CAST('bench' AS BLOB), 'fill', CAST(value ->> 1 AS BLOB), `+otherColumns(`x''`, "CAST('"+body+"' AS BLOB)")+` FROM json_each(?1)`,
			"["+list.String()+"]")
		meter.Check(err)
	}
	meter.Check(tx.Commit())
	var busy, pages, done int
	meter.Check(db.QueryRow(`PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &done))
}
