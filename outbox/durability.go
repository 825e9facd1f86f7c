package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
)

// SettingError is a setting of the database, of [Config] or of [RelayConfig] with
// which the outbox would not keep its promises.
type SettingError struct {
	Setting string // for example "synchronous"
	Found   string
	Rule    string // what is wanted, and the way to get it
}

func (e *SettingError) Error() string {
	return fmt.Sprintf("outbox: %s is %s: %s", e.Setting, e.Found, e.Rule)
}

// checkDurability returns the first setting with which a commit that was acknowledged
// may be lost, and nil if there is none. An event would be lost with its
// transaction, which is consistent; the mark of an attempt must not be.
func checkDurability(ctx context.Context, db *sql.DB, d Dialect, allowLoss bool) error {
	check := checkSQLite
	if d == PostgreSQL {
		check = checkPostgreSQL
	}
	weak, err := check(ctx, db)
	if err != nil {
		return err
	}
	if weak == nil || allowLoss {
		return nil
	}
	weak.Rule += ", or set Config.AllowLoss"
	return weak
}

// checkSQLite reads the settings of one connection. Those of the others are the same
// if they come from the data source name.
func checkSQLite(ctx context.Context, db *sql.DB) (*SettingError, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("outbox: open: %w", err)
	}
	defer conn.Close()
	pragma := func(name string) (value string, err error) {
		if err = conn.QueryRowContext(ctx, "PRAGMA "+name).Scan(&value); err != nil {
			return "", fmt.Errorf("outbox: PRAGMA %s: %w", name, err)
		}
		return strings.ToLower(value), nil
	}
	busy, err := pragma("busy_timeout")
	if err != nil {
		return nil, err
	}
	if ms, err := strconv.Atoi(busy); err != nil || ms < 1000 {
		return nil, &SettingError{
			Setting: "busy_timeout", Found: busy + " ms",
			Rule: "want at least 1000, or a second writer fails at once; put it into the data source name, for modernc.org/sqlite as _pragma=busy_timeout(10000)",
		}
	}
	var file string
	if err := conn.QueryRowContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&file); err != nil {
		return nil, fmt.Errorf("outbox: PRAGMA database_list: %w", err)
	}
	journal, err := pragma("journal_mode")
	if err != nil {
		return nil, err
	}
	synchronous, err := pragma("synchronous")
	if err != nil {
		return nil, err
	}
	switch {
	case file == "":
		return &SettingError{"database", "in memory", "it ends with its connection; use a file"}, nil
	case journal == "off" || journal == "memory":
		return &SettingError{"journal_mode", journal, "a crash may destroy the file; use WAL, as _pragma=journal_mode(WAL)"}, nil
	case synchronous != "2" && synchronous != "3":
		return &SettingError{"synchronous", synchronous, "a loss of power may undo acknowledged writes; use FULL, as _pragma=synchronous(FULL)"}, nil
	}
	return nil, nil
}

func checkPostgreSQL(ctx context.Context, db *sql.DB) (*SettingError, error) {
	var fsync, fullPage, commit, readOnly string
	err := db.QueryRowContext(ctx, `SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'), current_setting('transaction_read_only')`).
		Scan(&fsync, &fullPage, &commit, &readOnly)
	switch {
	case err != nil:
		return nil, fmt.Errorf("outbox: open: %w", err)
	case readOnly == "on":
		return nil, &SettingError{"transaction_read_only", "on", "the outbox writes; connect to the primary server"}
	case fsync != "on":
		return &SettingError{"fsync", fsync, "a crash of the machine may destroy the database; set it on in the server"}, nil
	case fullPage != "on":
		return &SettingError{"full_page_writes", fullPage, "a crash of the machine may tear pages; set it on in the server"}, nil
	case commit == "off":
		return &SettingError{"synchronous_commit", commit, "a crash may undo acknowledged writes; set it on for the role, the database or the connection"}, nil
	}
	return nil, nil
}
