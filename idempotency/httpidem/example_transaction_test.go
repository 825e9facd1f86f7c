package httpidem_test

import (
	"context"
	"database/sql"
	"errors"
	"net/http"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/httpidem"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

// sqlTransaction puts key, effect and answer into one transaction of a database.
type sqlTransaction struct {
	store *sqlstore.Store
	tx    *sql.Tx
}

func (t sqlTransaction) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	return t.store.ClaimTx(ctx, t.tx, c)
}

func (t sqlTransaction) Complete(ctx context.Context, ref idempotency.Ref, r idempotency.Result) error {
	if err := t.store.CompleteTx(ctx, t.tx, ref, r); err != nil {
		return err
	}
	return t.tx.Commit()
}

func (t sqlTransaction) Rollback() error {
	if err := t.tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

type sqlTxKey struct{}

// With a transaction no key is ever in doubt: a payment and its answer are
// committed together, and whatever interrupts the handler rolls both back.
func ExampleTransaction() {
	var (
		db    *sql.DB         // sql.Open with the driver of your choice
		store *sqlstore.Store // of the same database
	)
	idempotent, err := httpidem.New(httpidem.Config{
		Begin: func(ctx context.Context) (context.Context, httpidem.Transaction, error) {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return nil, nil, err
			}
			return context.WithValue(ctx, sqlTxKey{}, tx), sqlTransaction{store, tx}, nil
		},
		Scope:     func(r *http.Request) string { return principal(r) },
		Authorize: func(*http.Request, idempotency.Record) error { return nil },
	})
	if err != nil {
		panic(err)
	}
	http.Handle("POST /payments", idempotent.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tx := r.Context().Value(sqlTxKey{}).(*sql.Tx) // do not commit it: the middleware does
		if _, err := tx.ExecContext(r.Context(), `INSERT INTO payments (amount) VALUES (10)`); err != nil {
			http.Error(w, "not paid", http.StatusInternalServerError) // rolled back
			return
		}
		w.WriteHeader(http.StatusCreated)
	})))
}
