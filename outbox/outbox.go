package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqldb"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// DefaultResendFor is the default of [Config].ResendFor: 4 minutes and 30 seconds. It is
// below SQS's deduplication interval of five minutes, to allow for request times and
// clock differences.
const DefaultResendFor = window.RetryFor

// Config describes an outbox. All processes of an outbox need the same Config.
type Config struct {
	// DB is the database. The caller closes DB after the end of the relay.
	DB *sql.DB

	Dialect Dialect

	// ResendFor is the time, counted from a message's first attempt, in which the message
	// may be sent again. After this time, a message without a confirmation counts as late.
	// Zero means [DefaultResendFor], the maximum.
	ResendFor time.Duration

	// Late selects the relay's action for late messages. The zero value, LateHold, stops
	// the group at such a message.
	Late LatePolicy

	// Sent selects whether messages are deleted or archived when they leave the outbox. The
	// zero value deletes them.
	Sent SentPolicy

	// AllowLoss accepts database settings with which a crash of the machine may undo
	// commits. Messages can then be delivered twice.
	AllowLoss bool
}

// LatePolicy selects the relay's action for late messages. A late message was possibly
// sent, and its first attempt is at least [Config].ResendFor ago. It may be in the SQS
// queue, and a resend might deliver it twice.
type LatePolicy uint8

const (
	// LateHold keeps the message and its group until a call of [Outbox.Resolve].
	// [Outbox.Late] lists the held messages.
	LateHold LatePolicy = iota

	// LateResend sends the message again: at-least-once delivery. Use it if consumers
	// recognise dedupe keys for longer than SQS.
	LateResend

	// LateAssumeSent assumes that the message was sent: at-most-once delivery.
	LateAssumeSent
)

// SentPolicy selects whether messages are deleted or archived when they leave the outbox.
type SentPolicy uint8

const (
	// SentDelete deletes the message.
	SentDelete SentPolicy = iota

	// SentArchive moves the message to the table outbox_archive, with SQS's message ID
	// and sequence number, for a replay. See [Outbox.Purge].
	SentArchive
)

// Outbox accesses the outbox tables of a database. It is safe for concurrent use and has
// no goroutines.
type Outbox struct {
	config Config
	sql    statements
}

// Open returns the outbox of a database prepared by [Migrate]. It returns an
// [*idempotency.InvalidError] for an invalid configuration. Without AllowLoss, this
// includes database settings with which a crash may undo commits.
func Open(ctx context.Context, c Config) (*Outbox, error) {
	if c.ResendFor == 0 {
		c.ResendFor = DefaultResendFor
	}
	if c.ResendFor < time.Second || c.ResendFor > DefaultResendFor {
		return nil, wrong("Config.ResendFor", c.ResendFor.String(), fmt.Sprintf("want 1s to %v: SQS recognises a message for five minutes", DefaultResendFor))
	}
	if c.Late > LateAssumeSent {
		return nil, wrong("Config.Late", fmt.Sprint(uint8(c.Late)), "want LateHold, LateResend or LateAssumeSent")
	}
	if c.Sent > SentArchive {
		return nil, wrong("Config.Sent", fmt.Sprint(uint8(c.Sent)), "want SentDelete or SentArchive")
	}
	if _, err := schema.Open(ctx, c.DB, c.Dialect, c.AllowLoss); err != nil {
		return nil, err
	}
	return &Outbox{config: c, sql: newStatements(c.Dialect)}, nil
}

// wrong returns an [idempotency.InvalidError] with the package's prefix.
func wrong(field, found, rule string) error {
	return fmt.Errorf("outbox: %w", &idempotency.InvalidError{Field: field, Found: found, Rule: rule})
}

// read calls f. On PostgreSQL f runs in a transaction in which each statement is planned
// for the present size of the tables (custom plans).
func (o *Outbox) read(ctx context.Context, f func(queryer) error) error {
	if o.config.Dialect == SQLite {
		return f(o.config.DB)
	}
	tx, err := o.config.DB.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // the transaction only reads
	if _, err := tx.ExecContext(ctx, `SELECT `+customPlans); err != nil {
		return err
	}
	return f(tx)
}

// each runs a query and calls scan for each row. Like read, it makes PostgreSQL plan the
// query for its actual parameters (a custom plan).
func (o *Outbox) each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	return o.read(ctx, func(q queryer) error { return sqldb.Each(ctx, q, scan, query, args...) })
}
