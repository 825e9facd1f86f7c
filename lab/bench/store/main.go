// Command bench measures claims in an idempotency store. A claim is a call that records the
// start of an operation under a key, so that the operation runs once. One run measures
// claims with shared commits, claims with one transaction each, and duplicates (claims of
// finished keys). There are 64 writers, the commits are durable, the bodies have 300 bytes,
// and 6 percent of the claims are repeated.
//
//	go run ./bench/store [-time 3s] [-rounds 3] [-events 20000] [-producer] [-postgres URL] [-keys N]
//
// Shared commits are compared with one transaction per claim. Both make the same claim with
// the same code. Claims with one transaction each are made as fast as possible. On SQLite,
// a mutex lets one writer run at a time, because this is faster than the waiting inside
// SQLite. On PostgreSQL, each writer has its own connection.
//
// Both are measured without and with the ledger, which is the store's append-only record of
// the changes of keys. With the ledger, a goroutine seals its entries during the
// measurements; at the end all entries are sealed and verified. Duplicates are measured
// only without the ledger.
//
// Then two producers send events, one with and one without the store.
//
// With -keys the command instead measures the time to open a store with N keys and the time
// to look up keys there.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
	"github.com/kansas-frontier-matrix/sqsfifo/lab/bench/internal/meter"
)

const writers = 64

func main() {
	log.SetFlags(0)
	length := flag.Duration("time", 3*time.Second, "length of one measurement")
	rounds := flag.Int("rounds", 3, "measurements of each side; the median counts")
	server := flag.String("postgres", cmp.Or(os.Getenv("SQLSTORE_POSTGRES"), "postgres://postgres@127.0.0.1:5432/test"), "PostgreSQL server")
	keys := flag.Int("keys", 0, "measure lookups among so many keys instead")
	events := flag.Int("events", 20000, "events of a measurement of the producer")
	only := flag.Bool("producer", false, "measure the producer only")
	flag.Parse()
	run := func(name string, open func() (*sql.DB, func()), dialect sqlstore.Dialect) {
		for _, ledger := range []bool{false, true} {
			if *only || ledger && *keys > 0 {
				continue
			}
			db, drop := open()
			if *keys > 0 {
				measureLookups(name, db, dialect, *keys)
			} else {
				measure(name, db, dialect, ledger, *length, *rounds)
			}
			meter.Check(db.Close())
			drop()
		}
		if *keys > 0 {
			return
		}
		for _, delay := range []time.Duration{roundTrip, 0} {
			db, drop := open()
			produce(name, db, dialect, *events, *rounds, delay)
			meter.Check(db.Close())
			drop()
		}
	}
	run("SQLite, WAL, synchronous FULL", openSQLite, sqlstore.SQLite)

	admin, err := sql.Open("pgx", *server)
	meter.Check(err)
	if err := admin.Ping(); err != nil {
		fmt.Printf("PostgreSQL: skipped: %v\n", err)
		return
	}
	var version string
	meter.Check(admin.QueryRow(`SHOW server_version`).Scan(&version))
	run("PostgreSQL "+version+", fsync, synchronous_commit", func() (*sql.DB, func()) {
		return openPostgreSQL(admin, *server)
	}, sqlstore.PostgreSQL)
}

// openSQLite makes a database file in the current directory. The returned function deletes
// the file.
func openSQLite() (*sql.DB, func()) {
	dir, err := os.MkdirTemp(".", "bench")
	meter.Check(err)
	path, err := filepath.Abs(filepath.Join(dir, "keys.db"))
	meter.Check(err)
	// The documentation of package sqlstore recommends these settings, with a shorter
	// busy_timeout.
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(30000)&_pragma=cache_size(-65536)&_pragma=mmap_size(2147418112)")
	meter.Check(err)
	return db, func() { meter.Check(os.RemoveAll(dir)) }
}

// openPostgreSQL makes a schema. The returned function drops the schema.
func openPostgreSQL(admin *sql.DB, server string) (*sql.DB, func()) {
	schema := fmt.Sprintf("sqlstore_bench_%x", rand.Uint64())
	_, err := admin.Exec("CREATE SCHEMA " + schema)
	meter.Check(err)
	db, err := sql.Open("pgx", server+"?search_path="+schema)
	meter.Check(err)
	db.SetMaxOpenConns(writers + 4)
	db.SetMaxIdleConns(writers + 4)
	return db, func() {
		_, err := admin.Exec("DROP SCHEMA " + schema + " CASCADE")
		meter.Check(err)
	}
}

// measure prints the rates of three kinds of claims (shared commits, one transaction per
// claim, duplicates) and their ratios.
func measure(name string, db *sql.DB, dialect sqlstore.Dialect, withLedger bool, length time.Duration, rounds int) {
	ctx := context.Background()
	meter.Check(sqlstore.Migrate(ctx, db, dialect))
	s, err := sqlstore.Open(ctx, sqlstore.Config{DB: db, Dialect: dialect, Ledger: withLedger})
	meter.Check(err)
	sealed := func() {}
	if withLedger {
		name += ", with the ledger"
		sealed = runSealer(s.Ledger())
	}
	// On SQLite, only one transaction at a time can write. Waiting for this mutex is faster
	// than waiting inside SQLite.
	var turn sync.Mutex
	single := func(c idempotency.Claim) (idempotency.Decision, error) {
		if dialect == sqlstore.SQLite {
			turn.Lock()
			defer turn.Unlock()
		}
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return 0, err
		}
		defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
		out, err := s.ClaimTx(ctx, tx, c)
		if err != nil {
			return 0, err
		}
		return out.Decision, tx.Commit()
	}
	grouped := func(c idempotency.Claim) (idempotency.Decision, error) {
		out, err := s.Claim(ctx, c)
		return out.Decision, err
	}
	var keys atomic.Int64
	fresh := func(rng *rand.Rand, last *idempotency.Claim) idempotency.Claim {
		if last.Token != (idempotency.Token{}) && rng.IntN(100) < 6 {
			c := *last
			c.Token = idempotency.NewToken()
			return c
		}
		return newClaim(keys.Add(1))
	}
	var rates [2][]float64
	var allocations []float64
	for range rounds {
		r, _ := rate(length, single, fresh)
		rates[0] = append(rates[0], r)
		r, a := rate(length, grouped, fresh)
		rates[1] = append(rates[1], r)
		allocations = append(allocations, a)
	}
	one, group := meter.Median(rates[0]), meter.Median(rates[1])
	fmt.Printf("%s, %d writers, %d cores\n", name, writers, runtime.NumCPU())
	fmt.Printf("  one transaction a claim %9.0f claims/s\n", one)
	fmt.Printf("  grouped                 %9.0f claims/s, %.2f times, %.0f allocations a claim\n", group, group/one, meter.Median(allocations))
	defer func() { meter.Check(s.Close()) }()
	if withLedger {
		sealed()
		return
	}
	// Claim and finish about 10,000 keys. Later claims of these keys are the duplicates.
	var settled []idempotency.Claim
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range writers {
		wg.Go(func() {
			for range 10000 / writers {
				c := newClaim(keys.Add(1))
				out, err := s.Claim(ctx, c)
				meter.Check(err)
				meter.Check(s.Finish(ctx, out.Ref(), idempotency.Completed(idempotency.Result{MessageID: "m", SequenceNumber: "1"})))
				mu.Lock()
				settled = append(settled, c)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	before := s.Stats()
	var duplicates []float64
	for range rounds {
		r, _ := rate(length, grouped, func(rng *rand.Rand, _ *idempotency.Claim) idempotency.Claim {
			c := settled[rng.IntN(len(settled))]
			c.Token = idempotency.NewToken()
			return c
		})
		duplicates = append(duplicates, r)
	}
	after := s.Stats()
	dup := meter.Median(duplicates)
	fmt.Printf("  duplicates              %9.0f claims/s, %.2f times grouped claims, %d transactions\n", dup, dup/group, after.Transactions-before.Transactions)
}

// runSealer starts a sealer. The returned function stops the sealer, seals the remaining
// entries and verifies the ledger.
func runSealer(l *sqlstore.Ledger) func() {
	k, err := sqlstore.NewSealer(sqlstore.SealerConfig{Ledger: l})
	meter.Check(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- k.Run(ctx) }()
	return func() {
		cancel()
		meter.Check(<-ended)
		start := time.Now()
		head, err := k.Seal(context.Background())
		meter.Check(err)
		rest := time.Since(start)
		start = time.Now()
		report, err := l.Verify(context.Background(), head)
		meter.Check(err)
		fmt.Printf("  %d entries under %d seals; the rest sealed in %v, verified at %.0f entries/s\n",
			report.Entries, report.Seals, rest.Round(time.Millisecond), float64(report.Entries)/time.Since(start).Seconds())
	}
}

func newClaim(n int64) idempotency.Claim {
	body := make([]byte, 300)
	for i := range body {
		body[i] = 'a' + byte((int(n)+i)%26)
	}
	return idempotency.Claim{
		Key: idempotency.Key{Scope: "bench", Operation: "send", Value: fmt.Sprint(n)}, Token: idempotency.NewToken(),
		Fingerprint: idempotency.FingerprintOf("bench/1", body), ExactHash: idempotency.ExactHashOf(body, "group"), Group: "group", Body: body,
		Terms: idempotency.Terms{Lease: time.Minute, TTL: time.Hour},
	}
}

// rate returns the claims per second of all writers, and the allocations per claim.
func rate(length time.Duration, claim func(idempotency.Claim) (idempotency.Decision, error), next func(*rand.Rand, *idempotency.Claim) idempotency.Claim) (float64, float64) {
	var n atomic.Int64
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(start.UnixNano()), uint64(w)))
			var last idempotency.Claim
			for time.Since(start) < length {
				last = next(rng, &last)
				_, err := claim(last)
				meter.Check(err)
				n.Add(1)
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	return float64(n.Load()) / took.Seconds(), float64(after.Mallocs-before.Mallocs) / float64(n.Load())
}
