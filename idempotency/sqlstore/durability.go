package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// SettingError is a setting of the database or of [Config] under which the store would
// not keep its promises.
type SettingError struct {
	Setting string // for example "synchronous"
	Found   string
	Rule    string // what is wanted, and the way to get it
}

func (e *SettingError) Error() string {
	return fmt.Sprintf("sqlstore: %s is %s: %s", e.Setting, e.Found, e.Rule)
}

// weakness is a setting under which an acknowledged write may be lost.
type weakness struct{ setting, found, rule string }

// checkSQLite reads the settings of one connection. Those of the others are the same
// if they come from the data source name.
func checkSQLite(ctx context.Context, db *sql.DB) ([]weakness, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: open: %w", err)
	}
	defer conn.Close()
	pragma := func(name string) (value string, err error) {
		if err = conn.QueryRowContext(ctx, "PRAGMA "+name).Scan(&value); err != nil {
			return "", fmt.Errorf("sqlstore: PRAGMA %s: %w", name, err)
		}
		return strings.ToLower(value), nil
	}
	var file string
	if err := conn.QueryRowContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&file); err != nil {
		return nil, fmt.Errorf("sqlstore: PRAGMA database_list: %w", err)
	}
	journal, err := pragma("journal_mode")
	if err != nil {
		return nil, err
	}
	synchronous, err := pragma("synchronous")
	if err != nil {
		return nil, err
	}
	busy, err := pragma("busy_timeout")
	if err != nil {
		return nil, err
	}
	if len(busy) < 4 { // less than 1000
		return nil, &SettingError{
			Setting: "busy_timeout", Found: busy + " ms",
			Rule: "want at least 1000, or a second writer fails at once; put it into the data source name, for modernc.org/sqlite as _pragma=busy_timeout(10000)",
		}
	}
	var weak []weakness
	if file == "" {
		weak = append(weak, weakness{"database", "in memory", "it ends with its connection; use a file"})
	} else if journal == "off" || journal == "memory" {
		weak = append(weak, weakness{"journal_mode", journal, "a crash may destroy the file; use WAL, as _pragma=journal_mode(WAL)"})
	}
	if synchronous != "2" && synchronous != "3" {
		weak = append(weak, weakness{"synchronous", synchronous, "a loss of power may undo acknowledged writes; use FULL, as _pragma=synchronous(FULL)"})
	}
	return weak, nil
}

func checkPostgreSQL(ctx context.Context, db *sql.DB) ([]weakness, error) {
	var fsync, fullPage, commit, readOnly string
	err := db.QueryRowContext(ctx, `SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'), current_setting('transaction_read_only')`).
		Scan(&fsync, &fullPage, &commit, &readOnly)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: open: %w", err)
	}
	if readOnly == "on" {
		return nil, &SettingError{Setting: "transaction_read_only", Found: "on", Rule: "the store writes; connect to the primary server"}
	}
	var weak []weakness
	if fsync != "on" {
		weak = append(weak, weakness{"fsync", fsync, "a crash of the machine may destroy the database; set it on in the server"})
	}
	if fullPage != "on" {
		weak = append(weak, weakness{"full_page_writes", fullPage, "a crash of the machine may tear pages; set it on in the server"})
	}
	if commit == "off" {
		weak = append(weak, weakness{"synchronous_commit", commit, "a crash may undo acknowledged writes; set it on for the role, the database or the connection"})
	}
	return weak, nil
}
