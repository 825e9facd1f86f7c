package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver pgx
	_ "modernc.org/sqlite"             // registers the driver sqlite

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
)

// database is a database named on the command line.
type database struct {
	*sql.DB
	dialect sqlstore.Dialect
	shown   string // path or URL without the password, for messages to people
	name    string // path or URL without user and password; identifies the database
}

// openDatabase opens an existing SQLite file or a postgres:// URL. It neither creates nor
// changes data.
func openDatabase(ctx context.Context, source string) (*database, error) {
	scheme, _, isURL := strings.Cut(source, "://")
	switch {
	case isURL && (scheme == "postgres" || scheme == "postgresql"):
		return openPostgreSQL(ctx, source)
	case isURL:
		return nil, fmt.Errorf("no database has URLs with %q; name the file of a SQLite database, or postgres://USER@HOST/DATABASE", scheme)
	}
	return openSQLite(source)
}

func openSQLite(path string) (*database, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file; name the file of a SQLite database", path)
	}
	absolute, err := canonicalPath(path)
	if err != nil {
		return nil, err
	}
	source := url.URL{Scheme: "file", Path: filepath.ToSlash(absolute), RawQuery: url.Values{
		"mode": {"rw"}, "_txlock": {"immediate"}, "_pragma": {"synchronous(FULL)", "busy_timeout(10000)"},
	}.Encode()}
	db, err := sql.Open("sqlite", source.String())
	if err != nil {
		return nil, err
	}
	return &database{db, sqlstore.SQLite, path, absolute}, nil
}

func openPostgreSQL(ctx context.Context, source string) (*database, error) {
	config, err := pgx.ParseConfig(source) // its errors do not show the password
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("pgx", source)
	if err != nil {
		return nil, err
	}
	d := &database{db, sqlstore.PostgreSQL, fmt.Sprintf("postgres://%s:%d/%s", config.Host, config.Port, config.Database), ""}
	var schema sql.NullString
	if err := db.QueryRowContext(ctx, `SELECT current_schema()`).Scan(&schema); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", d.shown, err), db.Close())
	}
	d.name = d.shown + " schema " + schema.String
	return d, nil
}

// openOutbox returns the outbox in a database.
func openOutbox(ctx context.Context, source string, c outbox.Config) (*outbox.Outbox, *database, error) {
	db, err := openDatabase(ctx, source)
	if err != nil {
		return nil, nil, err
	}
	c.DB, c.Dialect = db.DB, db.dialect
	box, err := outbox.Open(ctx, c)
	var setting *sqsfifo.InvalidError
	switch {
	case err == nil:
		return box, db, nil
	case errors.As(err, &setting) && setting.Field == "Config.ResendFor":
		return nil, nil, errors.Join(fmt.Errorf("--resend-for: is %s: %s", setting.Found, setting.Rule), db.Close())
	}
	return nil, nil, errors.Join(fmt.Errorf("%s: %w", db.shown, err), db.Close())
}

// openStore returns the idempotency store in a database.
func openStore(ctx context.Context, source string) (*sqlstore.Store, *database, error) {
	db, err := openDatabase(ctx, source)
	if err != nil {
		return nil, nil, err
	}
	c := sqlstore.Config{DB: db.DB, Dialect: db.dialect}
	store, err := sqlstore.Open(ctx, c)
	var setting *sqsfifo.InvalidError
	if errors.As(err, &setting) && setting.Field == "Config.Ledger" {
		// The store has a ledger (an append-only record of all keys), so Open needs
		// Config.Ledger.
		c.Ledger = true
		store, err = sqlstore.Open(ctx, c)
	}
	if err == nil {
		return store, db, nil
	}
	return nil, nil, errors.Join(fmt.Errorf("%s: %w", db.shown, err), db.Close())
}
