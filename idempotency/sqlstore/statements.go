package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
)

// writer is the transaction interface used by engines for writing.
type writer interface {
	queryer
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// statements holds a database's statements, compiled once per connection. The zero value
// is empty.
type statements struct {
	db     *sql.DB
	byText map[string]*sql.Stmt
}

// prepare adds statements. Do not call prepare during a transaction, which may hold the
// only connection.
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

// QueryContext implements queryer. It reuses the compiled statement.
func (p *statements) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if s := p.byText[text]; s != nil {
		return s.QueryContext(ctx, args...)
	}
	return p.db.QueryContext(ctx, text, args...)
}

// QueryRowContext implements queryer. It reuses the compiled statement.
func (p *statements) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	if s := p.byText[text]; s != nil {
		return s.QueryRowContext(ctx, args...)
	}
	return p.db.QueryRowContext(ctx, text, args...)
}

// compiled returns a writer for the transaction tx that reuses the compiled statements.
// tx must belong to the store's *sql.DB.
func (p *statements) compiled(tx *sql.Tx) writer {
	return compiledTx{tx, p}
}

// tryCompiled returns a writer for a caller's transaction. If tx belongs to the store's
// *sql.DB, the writer reuses the compiled statements; otherwise the writer is tx itself.
func (p *statements) tryCompiled(ctx context.Context, tx *sql.Tx) writer {
	// If tx belongs to another *sql.DB, StmtContext returns a statement whose Close
	// fails.
	first := p.byText[sqliteFence]
	if first == nil || tx.StmtContext(ctx, first).Close() != nil {
		return tx
	}
	return p.compiled(tx)
}

// compiledTx is a transaction that reuses the compiled statements.
type compiledTx struct {
	*sql.Tx
	statements *statements
}

func (t compiledTx) PrepareContext(ctx context.Context, text string) (*sql.Stmt, error) {
	if s := t.statements.byText[text]; s != nil {
		return t.StmtContext(ctx, s), nil
	}
	return t.Tx.PrepareContext(ctx, text)
}

func (t compiledTx) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if s := t.statements.byText[text]; s != nil {
		return t.StmtContext(ctx, s).QueryContext(ctx, args...)
	}
	return t.Tx.QueryContext(ctx, text, args...)
}

func (t compiledTx) QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row {
	if s := t.statements.byText[text]; s != nil {
		return t.StmtContext(ctx, s).QueryRowContext(ctx, args...)
	}
	return t.Tx.QueryRowContext(ctx, text, args...)
}

func (t compiledTx) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	if s := t.statements.byText[text]; s != nil {
		return t.StmtContext(ctx, s).ExecContext(ctx, args...)
	}
	return t.Tx.ExecContext(ctx, text, args...)
}
