package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
)

// writer is what an engine writes with: a transaction.
type writer interface {
	queryer
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// statements of a database are compiled once for each of its connections. The zero value
// has none.
type statements struct {
	db     *sql.DB
	byText map[string]*sql.Stmt
}

// prepare adds statements. It is not for use within a transaction, which may have the only
// connection.
func (p *statements) prepare(ctx context.Context, db *sql.DB, texts ...string) error {
	p.db, p.byText = db, make(map[string]*sql.Stmt, len(texts))
	for _, text := range texts {
		s, err := db.PrepareContext(ctx, text)
		if err != nil {
			p.close()
			return fmt.Errorf("sqlstore: prepare: %w", err)
		}
		p.byText[text] = s
	}
	return nil
}

func (p *statements) close() {
	for _, s := range p.byText {
		s.Close()
	}
}

// query makes a query of the database or of a transaction.
func (p *statements) query(ctx context.Context, q queryer, text string, args ...any) (*sql.Rows, error) {
	if s := p.byText[text]; s != nil && q == queryer(p.db) {
		return s.QueryContext(ctx, args...)
	}
	return q.QueryContext(ctx, text, args...)
}

// in returns a transaction of the database that need not compile its statements again.
func (p *statements) in(tx *sql.Tx) writer { return preparedTx{tx, p} }

type preparedTx struct {
	*sql.Tx
	statements *statements
}

func (t preparedTx) PrepareContext(ctx context.Context, text string) (*sql.Stmt, error) {
	if s := t.statements.byText[text]; s != nil {
		return t.StmtContext(ctx, s), nil
	}
	return t.Tx.PrepareContext(ctx, text)
}
