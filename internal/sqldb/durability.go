package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
)

// Setting is a setting of a database under which its user does not keep a promise.
type Setting struct {
	Name  string // for example "synchronous"
	Found string
	Rule  string // what is wanted, and the way to get it
}

// Settings is what a database is set to.
type Settings struct {
	// Refused is a setting under which the database cannot be used at all; nil if there is
	// none.
	Refused *Setting

	// Weak are those under which an acknowledged commit may be lost.
	Weak []Setting
}

func (s *Settings) weak(name, found, rule string) {
	s.Weak = append(s.Weak, Setting{name, found, rule})
}

// ReadSQLite reads the settings of one connection. Those of the others are the same
// if they come from the data source name.
func ReadSQLite(ctx context.Context, db *sql.DB) (s Settings, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return s, fmt.Errorf("open: %w", err)
	}
	defer conn.Close()
	pragma := func(name string) (value string) {
		if err == nil {
			if err = conn.QueryRowContext(ctx, "PRAGMA "+name).Scan(&value); err != nil {
				err = fmt.Errorf("PRAGMA %s: %w", name, err)
			}
		}
		return strings.ToLower(value)
	}
	var file string
	if err := conn.QueryRowContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&file); err != nil {
		return s, fmt.Errorf("PRAGMA database_list: %w", err)
	}
	journal, synchronous, busy := pragma("journal_mode"), pragma("synchronous"), pragma("busy_timeout")
	if err != nil {
		return s, err
	}
	if ms, err := strconv.Atoi(busy); err != nil || ms < 1000 {
		s.Refused = &Setting{
			"busy_timeout", busy + " ms",
			"want at least 1000, or a second writer fails at once; put it into the data source name, for modernc.org/sqlite as _pragma=busy_timeout(10000)",
		}
	}
	switch {
	case file == "":
		s.weak("database", "in memory", "it ends with its connection; use a file")
	case journal == "off" || journal == "memory":
		s.weak("journal_mode", journal, "a crash may destroy the file; use WAL, as _pragma=journal_mode(WAL)")
	}
	if synchronous != "2" && synchronous != "3" {
		s.weak("synchronous", synchronous, "a loss of power may undo acknowledged writes; use FULL, as _pragma=synchronous(FULL)")
	}
	return s, nil
}

// ReadPostgreSQL reads the settings of one connection. What is the user of the
// database in the texts, such as "the store".
func ReadPostgreSQL(ctx context.Context, db *sql.DB, what string) (s Settings, err error) {
	var fsync, fullPage, commit, readOnly string
	err = db.QueryRowContext(ctx, `SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'), current_setting('transaction_read_only')`).
		Scan(&fsync, &fullPage, &commit, &readOnly)
	if err != nil {
		return s, fmt.Errorf("open: %w", err)
	}
	if readOnly == "on" {
		s.Refused = &Setting{"transaction_read_only", "on", what + " writes; connect to the primary server"}
	}
	if fsync != "on" {
		s.weak("fsync", fsync, "a crash of the machine may destroy the database; set it on in the server")
	}
	if fullPage != "on" {
		s.weak("full_page_writes", fullPage, "a crash of the machine may tear pages; set it on in the server")
	}
	if commit == "off" {
		s.weak("synchronous_commit", commit, "a crash may undo acknowledged writes; set it on for the role, the database or the connection")
	}
	return s, nil
}
