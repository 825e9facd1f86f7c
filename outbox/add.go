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
	"time"
	"unicode/utf8"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqldb"
)

// MessageError is a message that [Outbox.Add] refused. Nothing was added, and the
// transaction can go on.
type MessageError struct {
	Index int    // of the message in the call
	Field string // for example "Group"
	Rule  string // what is wrong, and the way out
}

func (e *MessageError) Error() string {
	return fmt.Sprintf("outbox: not added: message %d: %s %s", e.Index, e.Field, e.Rule)
}

// check returns what keeps a message from being stored as it is. The relay's producer
// checks it against all rules; what Build returned keeps them.
func check(index int, m *sqsfifo.Message) error {
	wrong := func(field, rule string) error { return &MessageError{Index: index, Field: field, Rule: rule} }
	switch {
	case m == nil:
		return wrong("Message", "is nil; pass what Build returned")
	case m.Group == "" || len(m.Group) > 128:
		return wrong("Group", fmt.Sprintf("has %d bytes; want 1 to 128", len(m.Group)))
	case m.DedupeKey == "":
		return wrong("DedupeKey", "is empty; pass what Build returned")
	case m.Body == "":
		return wrong("Body", "is empty; pass what Build returned")
	case !utf8.ValidString(m.Body):
		return wrong("Body", "is not UTF-8; pass what Build returned")
	case !utf8.ValidString(m.DedupeKey):
		return wrong("DedupeKey", "is not UTF-8; SQS would store another one")
	}
	for i := range len(m.Group) {
		if c := m.Group[i]; c <= ' ' || c >= 0x7f {
			return wrong("Group", fmt.Sprintf("has the byte %#x at %d; want ASCII letters, digits and punctuation", c, i))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Attributes)) {
		if !utf8.ValidString(name) || !utf8.ValidString(m.Attributes[name]) {
			return wrong("Attributes", fmt.Sprintf("has a value under %q that is not UTF-8", name))
		}
	}
	return nil
}

// addition is a message on its way into the tables.
type addition struct {
	message []byte
	hash    [sha256.Size]byte
}

// Add stores messages in a transaction of the caller, in the order of the arguments
// within each group. They are sent if it commits, after all messages that earlier
// commits added to their groups.
//
// Add locks the counters of the groups until the transaction ends: other
// transactions that add to one of them wait. An error other than a [*MessageError] may
// leave the transaction unusable; roll it back. Call [Bell].Ring after the commit,
// so that the relay need not wait for its next poll.
func (o *Outbox) Add(ctx context.Context, tx *sql.Tx, msgs ...*sqsfifo.Message) error {
	byGroup := map[string][]addition{}
	for i, m := range msgs {
		if err := check(i, m); err != nil {
			return err
		}
		text, err := json.Marshal(m)
		if err != nil {
			return &MessageError{Index: i, Field: "Message", Rule: err.Error()}
		}
		byGroup[m.Group] = append(byGroup[m.Group], addition{text, sha256.Sum256([]byte(m.Body))})
	}
	if len(msgs) == 0 {
		return nil
	}
	// All calls take the counters in one order, or they would deadlock.
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

// The rows of input are counters in the order of the arrays. A statement sees what its
// own RETURNING returns, so that one round trip does both.
const postgresAdd = `WITH drawn AS (
  INSERT INTO outbox_groups AS g (message_group, last_position)
  SELECT message_group, n FROM unnest($1::text::text[], $2::text::bigint[]) WITH ORDINALITY AS t (message_group, n, at) ORDER BY at
  ON CONFLICT (message_group) DO UPDATE SET last_position = g.last_position + EXCLUDED.last_position
  RETURNING message_group, last_position
)
INSERT INTO outbox (message_group, position, message, body_hash, added_at)
SELECT t.message_group, d.last_position - t.before_last, t.message, t.body_hash, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM unnest($3::text::text[], $4::text::bigint[], $5::text::bytea[], $6::text::bytea[]) AS t (message_group, before_last, message, body_hash)
JOIN drawn AS d ON d.message_group = t.message_group COLLATE "C"`

func (o *Outbox) addPostgreSQL(ctx context.Context, tx *sql.Tx, groups []string, byGroup map[string][]addition) error {
	var names, counts, of, beforeLast, messages, hashes sqldb.Array
	rows := int64(0)
	for _, g := range groups {
		n := len(byGroup[g])
		names.Text(g)
		counts.Int(int64(n))
		for i, a := range byGroup[g] {
			of.Text(g)
			beforeLast.Int(int64(n - 1 - i))
			messages.Bytes(a.message)
			hashes.Bytes(a.hash[:])
		}
		rows += int64(n)
	}
	result, err := tx.ExecContext(ctx, postgresAdd, names.String(), counts.String(), of.String(), beforeLast.String(), messages.String(), hashes.String())
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err == nil && n != rows {
		return fmt.Errorf("%d of %d rows were inserted", n, rows)
	}
	return nil
}

func (o *Outbox) addSQLite(ctx context.Context, tx *sql.Tx, groups []string, byGroup map[string][]addition) (err error) {
	insert, err := tx.PrepareContext(ctx, `INSERT INTO outbox (message_group, position, message, body_hash, added_at) VALUES (?1, ?2, ?3, ?4, ?5)`)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, insert.Close()) }()
	for _, g := range groups {
		n := int64(len(byGroup[g]))
		var last int64
		err := tx.QueryRowContext(ctx, `INSERT INTO outbox_groups (message_group, last_position) VALUES (?1, ?2)
			ON CONFLICT (message_group) DO UPDATE SET last_position = last_position + excluded.last_position RETURNING last_position`, g, n).Scan(&last)
		if err != nil {
			return err
		}
		for i, a := range byGroup[g] {
			if _, err := insert.ExecContext(ctx, g, last-n+1+int64(i), a.message, a.hash[:], time.Now().UnixMicro()); err != nil {
				return err
			}
		}
	}
	return nil
}
