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
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

// A claim, its side effect and its result in one transaction: after a crash at any
// point, either all of them are there or none.
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
		if out.Decision == idempotency.Duplicate {
			return string(out.Record.Result.Response) + " (stored)", nil
		}
		if err := out.Err(idempotency.Key{Scope: "tenant-7", Operation: "orders.create", Value: key}); err != nil {
			return "", err
		}
		if _, err := tx.Exec(`INSERT INTO orders VALUES (?)`, item); err != nil {
			return "", err
		}
		if outOfStock {
			return "", errors.New("out of stock") // rolled back: as if never claimed
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
