package outbox

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqldb"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// check returns an error for a message that would stop its group for good: SQS never
// accepts it, or the database cannot store it unchanged. Messages from Build pass. The
// relay's producer checks all other rules before the send.
func check(index int, m *sqsfifo.Message) error {
	wrong := func(field, found, rule string) error {
		return wrong(fmt.Sprintf("msgs[%d].%s", index, field), found, rule)
	}
	switch {
	case m == nil:
		return wrong("Message", "nil", "pass what Build returned")
	case m.Group == "" || len(m.Group) > 128:
		return wrong("Group", fmt.Sprintf("%d bytes", len(m.Group)), "want 1 to 128")
	case m.DedupeKey == "":
		return wrong("DedupeKey", "empty", "pass what Build returned")
	case m.Body == "":
		return wrong("Body", "empty", "pass what Build returned")
	case !utf8.ValidString(m.Body):
		return wrong("Body", "not UTF-8", "pass what Build returned")
	case !utf8.ValidString(m.DedupeKey):
		return wrong("DedupeKey", "not UTF-8", "SQS would store another one")
	}
	for i := range len(m.Group) {
		if c := m.Group[i]; c <= ' ' || c >= 0x7f {
			return wrong("Group", fmt.Sprintf("the byte %#x at %d", c, i), "want ASCII letters, digits and punctuation")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Attributes)) {
		if !utf8.ValidString(name) || !utf8.ValidString(m.Attributes[name]) {
			return wrong("Attributes", fmt.Sprintf("%q with a value that is not UTF-8", name), "SQS would store another one")
		}
	}
	checked := lint.Message{Body: m.Body, GroupID: m.Group, Attributes: make(map[string]lint.Attribute, len(m.Attributes))}
	for name, value := range m.Attributes {
		checked.Attributes[name] = lint.Attribute{DataType: "String", StringValue: value}
	}
	for _, f := range lint.Check(checked) {
		if lint.RefusedBySQS(f.Rule) {
			// The text of f may quote the message, which must not appear in logs. Use the
			// rule's title.
			rule, _ := lint.Lookup(f.Rule)
			return wrong(f.Field, rule.ID+" "+rule.Name, rule.Title+"; "+f.Fix)
		}
	}
	return nil
}

// addition is a message to insert.
type addition struct {
	message []byte
	hash    [sha256.Size]byte
}

// Add stores messages in tx, a transaction of the caller. After the commit, the relay sends
// them in argument order within each group, after all messages committed earlier to the
// group.
//
// Add locks the counters of the groups until the transaction ends. Other transactions that
// add to these groups wait.
//
// After an error other than an [*idempotency.InvalidError] the transaction may be unusable;
// roll it back. After the commit, call [Relay.Wake]; otherwise the relay finds the messages
// at its next poll.
func (o *Outbox) Add(ctx context.Context, tx *sql.Tx, msgs ...*sqsfifo.Message) error {
	byGroup := map[string][]addition{}
	for i, m := range msgs {
		if err := check(i, m); err != nil {
			return err
		}
		text, err := json.Marshal(m)
		if err != nil {
			return wrong(fmt.Sprintf("msgs[%d]", i), "not JSON", err.Error())
		}
		byGroup[m.Group] = append(byGroup[m.Group], addition{text, sha256.Sum256([]byte(m.Body))})
	}
	if len(msgs) == 0 {
		return nil
	}
	// Every call locks the counters in the same order; otherwise calls could deadlock.
	groups := slices.Sorted(maps.Keys(byGroup))
	var err error
	if o.config.Dialect == PostgreSQL {
		err = o.addPostgreSQL(ctx, tx, groups, byGroup)
	} else {
		err = o.addSQLite(ctx, tx, groups, byGroup)
	}
	if err != nil {
		return fmt.Errorf("outbox: add: %w", err)
	}
	return nil
}

// postgresAdd increases the counters of the groups, in the order of the array $1, and
// inserts rows at the new positions. If a newer schema excludes this program's version,
// postgresAdd changes nothing.
var postgresAdd = sqldb.PostgreSQL.Render(`WITH new_counters AS (
  INSERT INTO outbox_groups AS g (message_group, last_position)
  SELECT message_group, n FROM unnest($1::text::text[], $2::text::bigint[]) WITH ORDINALITY AS t (message_group, n, at) WHERE ` + schema.Oldest() + ` <= $7::bigint ORDER BY at
  ON CONFLICT (message_group) DO UPDATE SET last_position = g.last_position + EXCLUDED.last_position
  RETURNING message_group, last_position
)
INSERT INTO outbox (message_group, position, message, body_hash, added_at)
SELECT t.message_group, d.last_position - t.before_last, t.message, t.body_hash, {now}
FROM unnest($3::text::text[], $4::text::bigint[], $5::text::bytea[], $6::text::bytea[]) AS t (message_group, before_last, message, body_hash)
JOIN new_counters AS d ON d.message_group = t.message_group COLLATE "C"`)

func (o *Outbox) addPostgreSQL(ctx context.Context, tx *sql.Tx, groups []string, byGroup map[string][]addition) error {
	var counts, rows [][]any
	for _, g := range groups {
		n := int64(len(byGroup[g]))
		counts = append(counts, []any{g, n})
		for i, a := range byGroup[g] {
			rows = append(rows, []any{g, n - 1 - int64(i), a.message, a.hash[:]})
		}
	}
	result, err := tx.ExecContext(ctx, postgresAdd, slices.Concat(sqldb.Columns(counts), sqldb.Columns(rows), []any{schema.Latest()})...)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == int64(len(rows)) {
		return err
	}
	if err := schema.CheckVersion(ctx, tx); err != nil {
		return err
	}
	return fmt.Errorf("fewer than %d rows were inserted", len(rows))
}

// All times of an outbox come from the database's clock ({now}), because times of two
// clocks are not comparable, even on one machine.
var sqliteAdd = sqldb.SQLite.Render(`INSERT INTO outbox (message_group, position, message, body_hash, added_at) VALUES (?1, ?2, ?3, ?4, {now})`)

func (o *Outbox) addSQLite(ctx context.Context, tx *sql.Tx, groups []string, byGroup map[string][]addition) (err error) {
	insert, err := tx.PrepareContext(ctx, sqliteAdd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, insert.Close()) }()
	for _, g := range groups {
		n := int64(len(byGroup[g]))
		var last, oldest int64
		err := tx.QueryRowContext(ctx, `INSERT INTO outbox_groups (message_group, last_position) VALUES (?1, ?2)
			ON CONFLICT (message_group) DO UPDATE SET last_position = last_position + excluded.last_position RETURNING last_position, `+schema.Oldest(), g, n).Scan(&last, &oldest)
		if err == nil {
			err = schema.CheckOldest(oldest)
		}
		if err != nil {
			return err
		}
		for i, a := range byGroup[g] {
			if _, err := insert.ExecContext(ctx, g, last-n+1+int64(i), a.message, a.hash[:]); err != nil {
				return err
			}
		}
	}
	return nil
}
