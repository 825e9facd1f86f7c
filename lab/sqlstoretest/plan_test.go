package sqlstoretest

import (
	"strings"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

// PostgreSQL keeps the plan of the statement for endings, so the plan must be good for a
// large table even if it was made for an empty one: it searches the primary key for each
// ending.
func TestPlanOfEndings(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		if d.dialect != sqlstore.PostgreSQL {
			t.Skip("SQLite has no plan that depends on the size of the table")
		}
		var h hooks
		s := d.store(t, sqlstore.Config{DB: h.open(t, d)})
		out := claim(t, s, claimOf("a"), idempotency.DecisionNew)
		if err := s.Finish(t.Context(), out.Ref(), idempotency.Completed(idempotency.Result{MessageID: "m"})); err != nil {
			t.Fatal(err)
		}
		begin, finish := h.last(t, "plan_cache_mode"), h.last(t, "UPDATE idempotency_keys k SET")
		db := d.open(t)
		for _, statement := range []string{`DELETE FROM idempotency_keys`, `VACUUM ANALYZE idempotency_keys`} {
			if _, err := db.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		for _, statement := range []string{begin, `PREPARE endings AS ` + finish} {
			if _, err := tx.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		rows, err := tx.Query(`EXPLAIN EXECUTE endings (''` + strings.Repeat(`, '{}'`, strings.Count(finish, "::text::")) + `)`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var plan strings.Builder
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			plan.WriteString(line + "\n")
		}
		if !strings.Contains(plan.String(), "Index Cond: (key_id = ANY (ARRAY[l.key_id]))") || strings.Contains(plan.String(), "Seq Scan") {
			t.Errorf("the plan is\n%s", plan.String())
		}
	})
}
