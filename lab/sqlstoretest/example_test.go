package sqlstoretest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

// A claim, its side effect and its result share one transaction: a crash at any point
// leaves all of them or none.
func Example_transaction() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", sqliteSource(filepath.Join(dir, "shop.db")))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	if err := sqlstore.Migrate(ctx, db, sqlstore.SQLite); err != nil {
		fmt.Println(err)
		return
	}
	store, err := sqlstore.Open(ctx, sqlstore.Config{DB: db, Dialect: sqlstore.SQLite})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	if _, err := db.Exec(`CREATE TABLE orders (item TEXT)`); err != nil {
		fmt.Println(err)
		return
	}

	order := func(key, item string, outOfStock bool) (string, error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return "", err
		}
		defer tx.Rollback()
		out, err := store.ClaimTx(ctx, tx, idempotency.Claim{
			Key: idempotency.Key{Scope: "tenant-7", Operation: "orders.create", Value: key}, Token: idempotency.NewToken(),
			Fingerprint: idempotency.FingerprintOf("orders/1", []byte(item)),
			Terms:       idempotency.Terms{Lease: time.Minute, TTL: idempotency.TTLRequest},
		})
		if err != nil {
			return "", err
		}
		if out.Decision == idempotency.DecisionDuplicate {
			return string(out.Record.Result.Response) + " (stored)", nil
		}
		if err := out.Err(idempotency.Key{Scope: "tenant-7", Operation: "orders.create", Value: key}); err != nil {
			return "", err
		}
		if _, err := tx.Exec(`INSERT INTO orders VALUES (?)`, item); err != nil {
			return "", err
		}
		if outOfStock {
			return "", errors.New("out of stock") // the deferred Rollback also undoes the claim
		}
		answer := "ordered " + item
		if err := store.CompleteTx(ctx, tx, out.Ref(), idempotency.Result{Response: []byte(answer)}); err != nil {
			return "", err
		}
		return answer, tx.Commit()
	}
	fmt.Println(order("k1", "lamp", true))
	fmt.Println(order("k1", "lamp", false))
	fmt.Println(order("k1", "lamp", false))
	var n int
	fmt.Println(db.QueryRow(`SELECT count(*) FROM orders`).Scan(&n), n)
	// Output:
	//  out of stock
	// ordered lamp <nil>
	// ordered lamp (stored) <nil>
	// <nil> 1
}

// The ledger has the history of a key, and reveals later edits.
func Example_ledger() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", sqliteSource(filepath.Join(dir, "runs.db")))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	if err := sqlstore.Migrate(ctx, db, sqlstore.SQLite); err != nil {
		fmt.Println(err)
		return
	}
	store, err := sqlstore.Open(ctx, sqlstore.Config{DB: db, Dialect: sqlstore.SQLite, Ledger: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	key := idempotency.Key{Scope: "kfm", Operation: "pipeline.run", Value: "noaa-storms-v10"}
	out, err := store.Claim(ctx, idempotency.Claim{
		Key: key, Token: idempotency.NewToken(), Fingerprint: idempotency.FingerprintOf("run/1", []byte("noaa-storms-v10")),
		Terms:   idempotency.Terms{Lease: time.Hour, TTL: idempotency.Forever},
		Dataset: idempotency.Dataset{ID: "noaa-storms", Version: "v10.3.1", CARELabel: "restricted"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	masked := ledger.Annotation{Event: ledger.EventMasked, Key: key, Fence: out.Record.Fence, Note: "coordinates to 0.1 degrees"}
	if err := store.Ledger().Append(ctx, masked); err != nil {
		fmt.Println(err)
		return
	}
	if err := store.Finish(ctx, out.Ref(), idempotency.Completed(idempotency.Result{})); err != nil {
		fmt.Println(err)
		return
	}

	// Keep the head (number and hash of the last seal) where the database's users cannot
	// change it.
	head, err := store.Ledger().Head(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for line, err := range store.Ledger().Lines(ctx, ledger.Head{}) {
		if err == nil && line.Entry != nil {
			fmt.Printf("%d %s %q\n", line.Entry.Seq, line.Entry.Event, line.Entry.Note)
		}
	}

	// A user with the right to drop triggers drops the triggers and edits an entry.
	for _, statement := range []string{`DROP TRIGGER idempotency_ledger_update`, `UPDATE idempotency_ledger SET note = 'nothing' WHERE seq = 2`} {
		if _, err := db.Exec(statement); err != nil {
			fmt.Println(err)
			return
		}
	}
	_, err = store.Ledger().Verify(ctx, head)
	fmt.Println(err)
	// Output:
	// 1 claimed ""
	// 2 masked "coordinates to 0.1 degrees"
	// 3 completed ""
	// ledger: entry 2 of seal 2 was altered: its content does not have the hash that was sealed
}
