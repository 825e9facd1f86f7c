package sqldb

import "testing"

// Render replaces all placeholders in braces, and parameters keep their numbers.
func TestRender(t *testing.T) {
	text := `SELECT ?2, {now} FROM {records ?1: g text, p bigint} WHERE g IN ({list ?12})`
	for dialect, want := range map[Dialect]string{
		PostgreSQL: `SELECT $2, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM json_to_recordset(CAST($1 AS text)::json) AS x (g text, p bigint) WHERE g IN (SELECT value FROM json_array_elements_text(CAST($12 AS text)::json))`,
		SQLite:     `SELECT ?2, (CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000) FROM (SELECT json_extract(value, '$.g') AS g, json_extract(value, '$.p') AS p FROM json_each(?1)) AS x WHERE g IN (SELECT value FROM json_each(?12))`,
	} {
		if got := dialect.Render(text); got != want {
			t.Errorf("%v: got %s, want %s", dialect, got, want)
		}
	}
}

// oldest returns the number of the last step with StopsOlder, or 1 without such a step.
func TestOldest(t *testing.T) {
	for _, tc := range []struct {
		steps []Step
		want  int64
	}{
		{[]Step{{}}, 1},
		{[]Step{{}, {}}, 1},
		{[]Step{{}, {StopsOlder: true}}, 2},
		{[]Step{{}, {StopsOlder: true}, {}}, 2},
	} {
		if got := (&Schema{Steps: tc.steps}).oldest(); got != tc.want {
			t.Errorf("%v: got %d, want %d", tc.steps, got, tc.want)
		}
	}
}
