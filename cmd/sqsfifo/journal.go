package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

// inUseError reports that another process has opened the journal.
type inUseError struct{ path string }

func (e *inUseError) Error() string {
	return fmt.Sprintf("%s is in use by another process; wait for its end, or use another journal", e.path)
}

// journal is an idempotency store in a SQLite file. The process locks the file until
// Close, so no other process can open the journal.
type journal struct {
	store *sqlstore.Store
	db    *sql.DB
	lock  *flock.Flock
	path  string // canonical path, the same for all names of the file
}

// openJournal opens or creates a journal. The error is an [*inUseError] if another
// process has the journal open, under any name of the file.
func openJournal(ctx context.Context, path string) (*journal, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder; name a file", path)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) // #nosec G304 -- the user names the file
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	j := &journal{}
	if j.path, err = canonicalPath(path); err != nil {
		return nil, err
	}
	j.lock = flock.New(j.path + ".lock")
	switch locked, err := j.lock.TryLock(); {
	case err != nil:
		return nil, err
	case !locked:
		return nil, &inUseError{path}
	}
	if err := j.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), j.lock.Unlock())
	}
	return j, nil
}

func (j *journal) open(ctx context.Context) (err error) {
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(j.path), RawQuery: url.Values{
		"_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(10000)"},
	}.Encode()}
	if j.db, err = sql.Open("sqlite", name.String()); err != nil {
		return err
	}
	if err = sqlstore.Migrate(ctx, j.db, sqlstore.SQLite); err == nil {
		j.store, err = sqlstore.Open(ctx, sqlstore.Config{DB: j.db, Dialect: sqlstore.SQLite})
	}
	if err != nil {
		return errors.Join(err, j.db.Close())
	}
	return nil
}

// Close closes the store and the database, and lets other processes open the journal.
func (j *journal) Close() error { return errors.Join(j.store.Close(), j.db.Close(), j.lock.Unlock()) }
