package sqldb

import (
	"context"
	"database/sql"
)

// Function Each runs a query and calls the function `scan` for each row. It stops at the
// first error of `scan`.
func Each(ctx context.Context, q Queryer, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
