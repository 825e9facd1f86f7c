package httpidem_test

import (
	"database/sql"
	"net/http"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/httpidem"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

// With a transaction no key is ever in doubt: payment and answer are committed together,
// and any interruption of the handler rolls both back.
func ExampleInSQL() {
	var (
		db    *sql.DB         // sql.Open with the driver of your choice
		store *sqlstore.Store // of the same database
	)
	idempotent, err := httpidem.New(httpidem.Config{
		Begin:     httpidem.InSQL(db, store, nil),
		Scope:     func(r *http.Request) string { return principal(r) },
		Authorize: func(*http.Request, idempotency.Record) error { return nil },
	})
	if err != nil {
		panic(err)
	}
	http.Handle("POST /payments", idempotent.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tx := httpidem.SQLTx(r.Context()) // do not commit tx: the middleware does
		if _, err := tx.ExecContext(r.Context(), `INSERT INTO payments (amount) VALUES (10)`); err != nil {
			http.Error(w, "not paid", http.StatusInternalServerError) // rolled back
			return
		}
		w.WriteHeader(http.StatusCreated)
	})))
}
