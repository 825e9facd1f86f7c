package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// LateError reports a late message, which the relay does not send: SQS may have stored it
// so long ago that SQS may not recognise a resend. Later messages of the group wait for a
// call of [Outbox.Resolve].
type LateError struct {
	Group        string
	Position     int64
	DedupeKey    string
	FirstAttempt time.Time
}

// Error names the row and the next step. It omits the dedupe key, because errors are
// logged.
func (e *LateError) Error() string {
	return fmt.Sprintf("outbox: may have been stored: group %s, position %d was first sent at %s, which SQS may have forgotten; look for its dedupe key at the consumer, then call Resolve",
		e.Group, e.Position, e.FirstAttempt.Format(time.RFC3339))
}

// LateMessage is a late message: see [Outbox.Late].
type LateMessage struct {
	Group    string
	Position int64
	Message  *sqsfifo.Message // nil if the row cannot be decoded

	// FirstAttempt is the start of the first attempt to send the message. If the
	// database's clock was set back since then, FirstAttempt is an estimate.
	FirstAttempt time.Time

	Added time.Time
}

// Late returns the late messages ordered by group and position. A late message was possibly
// sent so long ago that SQS may not recognise a resend. It may be in the SQS queue. The
// relay resends it only after [Outbox.Resolve] or with the policy [LateResend].
//
// The relay marks several messages of a group as possibly sent before it sends the first.
// They become late together, even if only the first was sent.
//
// Late reads the database and needs no relay.
func (o *Outbox) Late(ctx context.Context) ([]LateMessage, error) {
	var out []LateMessage
	err := o.each(ctx, func(rows *sql.Rows) error {
		var r LateMessage
		var message []byte
		var first, added int64
		if err := rows.Scan(&r.Group, &r.Position, &message, &first, &added); err != nil {
			return err
		}
		r.FirstAttempt, r.Added = time.UnixMicro(first).UTC(), time.UnixMicro(added).UTC()
		if m := new(sqsfifo.Message); json.Unmarshal(message, m) == nil {
			r.Message = m
		}
		out = append(out, r)
		return nil
	}, o.sql.late, o.config.ResendFor.Microseconds())
	if err != nil {
		return nil, fmt.Errorf("outbox: late: %w", err)
	}
	return out, nil
}

// Errors that [Outbox.Resolve] may wrap.
var (
	// ErrNotFirst: the message is not the first of its group, or has left the outbox.
	// Only the first message of a group can be resolved.
	ErrNotFirst = errors.New("not the first message of its group")

	// ErrUnderWay: a relay may be sending the message. Call Resolve again when the
	// message is late (see [Outbox.Late]) or was refused.
	ErrUnderWay = errors.New("a relay may be sending it")
)

// Resolve applies an operator's decision to the first message of a group, which is late or
// was refused repeatedly.
//
//   - [idempotency.ResolutionTookEffect]: the consumer has the message. The message leaves
//     the outbox.
//   - [idempotency.ResolutionNoEffect]: the consumer does not have the message, or
//     ignores a second copy. The message and all late messages after it are sent like new
//     messages.
//   - [idempotency.ResolutionGiveUp]: the message must not be sent. The message leaves the
//     outbox, and its group continues.
//
// A relay sends a message only after SQS has confirmed the previous message of the group.
// If SQS does not have the first message, the later messages were never sent, and cannot
// become duplicates.
//
// After an error, Resolve may be repeated. It has changed nothing, except possibly after an
// error of the database's commit.
func (o *Outbox) Resolve(ctx context.Context, group string, position int64, r idempotency.Resolution) error {
	if err := r.Check(); err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	if err := o.resolve(ctx, group, position, r); err != nil {
		return fmt.Errorf("outbox: resolve group %s, position %d: %w", group, position, err)
	}
	return nil
}

func (o *Outbox) resolve(ctx context.Context, group string, position int64, r idempotency.Resolution) error {
	tx, err := o.config.DB.BeginTx(ctx, o.config.Dialect.TxOptions())
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	// Lock the leader's row, so that no relay can commit until this transaction ends.
	if _, err := tx.ExecContext(ctx, `UPDATE outbox_leader SET fence = fence WHERE id = 1`); err != nil {
		return err
	}
	if err := schema.CheckVersion(ctx, tx); err != nil {
		return err
	}
	var first int64
	// Microseconds until relays stop sending the message. While the number is above 0, a
	// relay may be sending the message.
	var left sql.NullInt64
	if err := tx.QueryRowContext(ctx, o.sql.resolving, group, position, o.config.ResendFor.Microseconds()).Scan(&first, &left); err != nil {
		return err
	}
	switch {
	case first != position:
		return ErrNotFirst
	case left.Int64 > 0:
		return fmt.Errorf("%w; it is late in %v", ErrUnderWay, time.Duration(left.Int64)*time.Microsecond)
	}
	switch r {
	case idempotency.ResolutionNoEffect:
		_, err = tx.ExecContext(ctx, o.sql.unmarkFrom, group, position)
	case idempotency.ResolutionTookEffect:
		err = o.remove(ctx, tx, []completion{{Group: group, Position: position, Outcome: OutcomeAssumedSent}})
	case idempotency.ResolutionGiveUp:
		err = o.remove(ctx, tx, []completion{{Group: group, Position: position, Outcome: OutcomeDiscarded}})
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}

// Purge deletes the messages that were archived at least the duration `age` ago, a thousand
// per transaction, and returns their number.
func (o *Outbox) Purge(ctx context.Context, age time.Duration) (purged int64, err error) {
	const batch = 1000
	for {
		result, err := o.config.DB.ExecContext(ctx, o.sql.purge, age.Microseconds(), batch)
		if err != nil {
			return purged, fmt.Errorf("outbox: purge: %w", err)
		}
		n, err := result.RowsAffected()
		purged += n
		if err != nil || n < batch {
			return purged, err
		}
	}
}
