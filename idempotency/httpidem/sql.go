package httpidem

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// SQLStore is the subset of *sqlstore.Store that [InSQL] calls.
type SQLStore interface {
	ClaimTx(ctx context.Context, tx *sql.Tx, c idempotency.Claim) (idempotency.Outcome, error)
	CompleteTx(ctx context.Context, tx *sql.Tx, ref idempotency.Ref, result idempotency.Result) error
}

// InSQL returns a [Config].Begin that opens a database transaction for each request with
// a key. The store must keep its keys in the same database. Nil options mean the default.
//
// The handler gets the transaction from [SQLTx], makes its effect in it, and must not end
// it. The middleware commits key, effect and answer together, or rolls all of them back.
//
// On SQLite the transaction blocks all other writers from the claim to the answer, so
// handlers must be short.
func InSQL(db *sql.DB, store SQLStore, options *sql.TxOptions) func(context.Context) (context.Context, Transaction, error) {
	return func(ctx context.Context) (context.Context, Transaction, error) {
		tx, err := db.BeginTx(ctx, options)
		if err != nil {
			return nil, nil, fmt.Errorf("httpidem: begin: %w", err)
		}
		return context.WithValue(ctx, sqlTxKey{}, tx), sqlTransaction{store, tx}, nil
	}
}

// SQLTx returns a handler's transaction under [InSQL]. It returns nil without a
// transaction, for example for a request without an optional key.
func SQLTx(ctx context.Context) *sql.Tx {
	tx, _ := ctx.Value(sqlTxKey{}).(*sql.Tx)
	return tx
}

type sqlTxKey struct{}

type sqlTransaction struct {
	store SQLStore
	tx    *sql.Tx
}

func (t sqlTransaction) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	return t.store.ClaimTx(ctx, t.tx, c)
}

func (t sqlTransaction) Complete(ctx context.Context, ref idempotency.Ref, r idempotency.Result) error {
	if err := t.store.CompleteTx(ctx, t.tx, ref, r); err != nil {
		return err
	}
	if err := t.tx.Commit(); err != nil {
		return fmt.Errorf("httpidem: commit: %w: %w", idempotency.ErrAmbiguous, err)
	}
	return nil
}

func (t sqlTransaction) Rollback() error {
	if err := t.tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}
