package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// LateError says that a message is held: an attempt to send it may have stored it, so
// long ago that SQS may not recognise another one. The later messages of its group
// wait. See [Outbox.Settle] for the ways out.
type LateError struct {
	Group        string
	Position     int64
	DedupeKey    string
	FirstAttempt time.Time
}

// Error names the row and the way out. The dedupe key is not in it, because errors go
// to logs.
func (e *LateError) Error() string {
	return fmt.Sprintf("outbox: may have been stored: group %s, position %d was first sent at %s, which SQS may have forgotten; look for its dedupe key at the consumer, then call Settle",
		e.Group, e.Position, e.FirstAttempt.Format(time.RFC3339))
}

// LateRow is a late message.
type LateRow struct {
	Group        string
	Position     int64
	Message      *sqsfifo.Message // nil if the row cannot be decoded
	FirstAttempt time.Time        // of the attempts that may have stored it
	Added        time.Time
}

// Late returns the late messages in the order of their groups and positions: each one
// that may be in the queue and is not sent again without [Outbox.Settle], or
// without a policy that says so. It reads the database and needs no relay.
//
// A message is also late if it was marked by the commit that let an earlier one of its
// group be sent, and nobody knows how far the sender came.
func (o *Outbox) Late(ctx context.Context) ([]LateRow, error) {
	var out []LateRow
	err := o.read(ctx, func(q queryer) (err error) {
		out, err = o.late(ctx, q)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("outbox: late: %w", err)
	}
	return out, nil
}

func (o *Outbox) late(ctx context.Context, q queryer) (out []LateRow, err error) {
	rows, err := q.QueryContext(ctx, o.sql.late, o.config.ResendFor.Microseconds())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r LateRow
		var message []byte
		var first, added int64
		if err := rows.Scan(&r.Group, &r.Position, &message, &first, &added); err != nil {
			return nil, err
		}
		r.FirstAttempt, r.Added = time.UnixMicro(first).UTC(), time.UnixMicro(added).UTC()
		if m := new(sqsfifo.Message); json.Unmarshal(message, m) == nil {
			r.Message = m
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

// Verdict is what an operator knows of a message.
type Verdict uint8

const (
	// Delivered: the consumer has it. It leaves the outbox.
	Delivered Verdict = iota + 1

	// SendAgain: the consumer does not have it, or recognises it. It is sent like a new
	// one, and so are the late messages after it: a relay sends a message only when the
	// one before it is confirmed, so that none of them was sent if this one was not.
	SendAgain

	// Discard: it is not to be sent. It leaves the outbox, and its group goes on
	// without it.
	Discard
)

var verdicts = [...]string{Delivered: "delivered", SendAgain: "send-again", Discard: "discard"}

// String returns "delivered", "send-again" or "discard".
func (v Verdict) String() string {
	if v >= Delivered && v <= Discard {
		return verdicts[v]
	}
	return fmt.Sprintf("Verdict(%d)", uint8(v))
}

// UnmarshalText is the inverse of String.
func (v *Verdict) UnmarshalText(text []byte) error {
	for i, name := range verdicts {
		if name != "" && name == string(text) {
			*v = Verdict(i)
			return nil
		}
	}
	return &SettingError{"Verdict", fmt.Sprintf("%q", text), "want delivered, send-again or discard"}
}

// ErrNotFirst and ErrUnderWay are wrapped by errors of [Outbox.Settle].
var (
	// ErrNotFirst: the position is not the first of its group, which is the one to
	// settle; or it has left the outbox.
	ErrNotFirst = errors.New("not the first message of its group")

	// ErrUnderWay: a relay may be sending it now. It is late, or was refused, later.
	ErrUnderWay = errors.New("a relay may be sending it")
)

// Settle decides what becomes of the first message of a group when the relay cannot: a
// late one, or one that is refused again and again. It changes nothing if it returns
// an error other than that of an unconfirmed commit, and may then be repeated.
func (o *Outbox) Settle(ctx context.Context, group string, position int64, v Verdict) error {
	if v < Delivered || v > Discard {
		return &SettingError{"Verdict", fmt.Sprint(uint8(v)), "want Delivered, SendAgain or Discard"}
	}
	if err := o.settle(ctx, group, position, v); err != nil {
		return fmt.Errorf("outbox: settle group %s, position %d: %w", group, position, err)
	}
	return nil
}

func (o *Outbox) settle(ctx context.Context, group string, position int64, v Verdict) error {
	tx, err := o.config.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	// The row of the leader keeps waves off until the commit.
	if _, err := tx.ExecContext(ctx, `UPDATE outbox_leader SET fence = fence WHERE id = 1`); err != nil {
		return err
	}
	var first int64
	var left sql.NullInt64 // until it is late, not positive if it is; 0 if it is not marked
	if err := tx.QueryRowContext(ctx, o.sql.settling, group, position, o.config.ResendFor.Microseconds()).Scan(&first, &left); err != nil {
		return err
	}
	switch {
	case first != position:
		return ErrNotFirst
	case left.Int64 > 0:
		return fmt.Errorf("%w; it is late in %v", ErrUnderWay, time.Duration(left.Int64)*time.Microsecond)
	}
	switch v {
	case SendAgain:
		_, err = tx.ExecContext(ctx, o.sql.unmark, group, position)
	case Delivered:
		err = o.remove(ctx, tx, []completion{{Group: group, Position: position, Outcome: OutcomeSettled}})
	case Discard:
		err = o.remove(ctx, tx, []completion{{Group: group, Position: position, Outcome: OutcomeDiscarded}})
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}

// Purge deletes archived messages that left the outbox longer ago than age, a thousand
// in a transaction, and returns how many.
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
