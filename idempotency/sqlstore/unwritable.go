package sqlstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// unwritable contains the primary result codes with which SQLite refuses all writes until
// the database is repaired: SQLITE_PERM, READONLY, IOERR, CORRUPT, FULL, CANTOPEN and
// NOTADB.
var unwritable = map[int]bool{3: true, 8: true, 10: true, 11: true, 13: true, 14: true, 26: true}

// refusal returns err, adding [idempotency.ErrUnwritable] if the database refuses all
// writes.
func refusal(err error) error {
	var sqlite interface{ Code() int }
	var postgres interface{ SQLState() string }
	switch {
	case errors.As(err, &sqlite) && unwritable[sqlite.Code()&0xff]:
	case errors.As(err, &postgres) && refuses(postgres.SQLState()):
	default:
		return err
	}
	return fmt.Errorf("%w: %w", idempotency.ErrUnwritable, err)
}

// refuses reports whether this PostgreSQL error code means that all writes fail until the
// database is repaired: disk_full, read_only_sql_transaction, insufficient_privilege, an
// undefined table or column, or corrupted data.
func refuses(state string) bool {
	switch state {
	case "53100", "25006", "42501", "42P01", "42703":
		return true
	}
	return strings.HasPrefix(state, "XX00") && state != "XX000"
}
