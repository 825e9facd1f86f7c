package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
)

// completion describes a row that leaves the outbox. The SQL statements `archive` and
// `remove` get a list of completions as JSON, with the column names as keys.
type completion struct {
	Group          string  `json:"g"`
	Position       int64   `json:"p"`
	Outcome        Outcome `json:"o"`
	MessageID      string  `json:"m"`
	SequenceNumber string  `json:"s"`
}

// remove deletes rows from the outbox. With SentArchive it first copies them to the
// archive.
func (o *Outbox) remove(ctx context.Context, tx *sql.Tx, rows []completion) error {
	list := toJSON(rows)
	if o.config.Sent == SentArchive {
		if _, err := tx.ExecContext(ctx, o.sql.archive, list); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, o.sql.remove, list)
	return err
}

// toJSON encodes list. Encoding cannot fail, because the lists contain only strings and
// numbers.
func toJSON[T any](list []T) string {
	if len(list) == 0 {
		return "[]"
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	return string(text)
}
