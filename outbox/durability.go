package outbox

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqldb"
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
	var found sqldb.Settings
	var err error
	if d == PostgreSQL {
		found, err = sqldb.ReadPostgreSQL(ctx, db, "the outbox")
	} else {
		found, err = sqldb.ReadSQLite(ctx, db)
	}
	switch {
	case err != nil:
		return fmt.Errorf("outbox: %w", err)
	case found.Refused != nil:
		return &SettingError{found.Refused.Name, found.Refused.Found, found.Refused.Rule}
	case len(found.Weak) == 0 || allowLoss:
		return nil
	}
	w := found.Weak[0]
	return &SettingError{w.Name, w.Found, w.Rule + ", or set Config.AllowLoss"}
}
