package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// DefaultResendFor is the default of [Config].ResendFor: the five minutes in which SQS
// recognises a message, less half a minute for clocks and the network.
const DefaultResendFor = 4*time.Minute + 30*time.Second

// Config describes an outbox. All processes that use its tables must have the same.
type Config struct {
	// DB is the database, opened by the caller, who closes it after the relay.
	DB *sql.DB

	Dialect Dialect

	// ResendFor is how long after its first attempt a message may be sent again. After
	// that it is late. Zero means [DefaultResendFor], which is the maximum.
	ResendFor time.Duration

	// Late says what becomes of late messages. The zero value holds them.
	Late LatePolicy

	// Sent says what becomes of messages that SQS has. The zero value deletes them.
	Sent SentPolicy

	// AllowLoss accepts settings of the database with which a crash of the machine may
	// undo commits. A message can then be delivered twice.
	AllowLoss bool
}

// LatePolicy says what becomes of a message that may be in the queue, since so
// long ago that SQS may not recognise it any more.
type LatePolicy uint8

const (
	// HoldLate keeps the message and its group until [Outbox.Settle] decides. See
	// [Outbox.Late] for the messages that are held.
	HoldLate LatePolicy = iota

	// ResendLate sends it again: at least once. It suits consumers that recognise
	// dedupe keys for longer than SQS does.
	ResendLate

	// SettleLate takes it for sent: at most once.
	SettleLate
)

// SentPolicy says what becomes of a message that SQS has.
type SentPolicy uint8

const (
	// DeleteSent deletes it.
	DeleteSent SentPolicy = iota

	// ArchiveSent moves it to the table outbox_archive, with SQS's message ID and
	// sequence number, for a replay. See [Outbox.Purge].
	ArchiveSent
)

// Outbox is the tables of an outbox in a database. It is safe for concurrent use and
// has no goroutines.
type Outbox struct {
	config Config
	sql    statements
}

// Open returns the outbox of a database that [Migrate] has prepared. It refuses, with
// a [*SettingError], a configuration that contradicts itself and settings of the
// database with which a crash may undo commits.
func Open(ctx context.Context, c Config) (*Outbox, error) {
	if c.DB == nil {
		return nil, &SettingError{"Config.DB", "nil", "open the database with a driver and pass it"}
	}
	schema, err := c.Dialect.schema()
	if err != nil {
		return nil, err
	}
	if c.ResendFor == 0 {
		c.ResendFor = DefaultResendFor
	}
	if c.ResendFor < time.Second || c.ResendFor > DefaultResendFor {
		return nil, &SettingError{"Config.ResendFor", c.ResendFor.String(), fmt.Sprintf("want 1s to %v: SQS recognises a message for five minutes", DefaultResendFor)}
	}
	if c.Late > SettleLate {
		return nil, &SettingError{"Config.Late", fmt.Sprint(uint8(c.Late)), "want HoldLate, ResendLate or SettleLate"}
	}
	if c.Sent > ArchiveSent {
		return nil, &SettingError{"Config.Sent", fmt.Sprint(uint8(c.Sent)), "want DeleteSent or ArchiveSent"}
	}
	if err := checkDurability(ctx, c.DB, c.Dialect, c.AllowLoss); err != nil {
		return nil, err
	}
	version, err := schema.Version(ctx, c.DB)
	switch {
	case err != nil:
		return nil, fmt.Errorf("outbox: %w", err)
	case version > schemaVersion:
		return nil, newerSchema(version)
	case version < schemaVersion:
		return nil, &SettingError{"schema", fmt.Sprintf("version %d", version), fmt.Sprintf("want %d; call Migrate", schemaVersion)}
	}
	return &Outbox{config: c, sql: newStatements(c.Dialect)}, nil
}

// read lets f read with statements that are planned for the tables as they are now.
func (o *Outbox) read(ctx context.Context, f func(queryer) error) error {
	if o.config.Dialect == SQLite {
		return f(o.config.DB)
	}
	tx, err := o.config.DB.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it read
	if _, err := tx.ExecContext(ctx, `SELECT `+customPlans); err != nil {
		return err
	}
	return f(tx)
}
