package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// schema is the outbox. SQLite has one writer at a time, so that the order of seq
// is the order of the commits.
const schema = `
CREATE TABLE IF NOT EXISTS outbox (
	seq           INTEGER PRIMARY KEY AUTOINCREMENT,
	message_group TEXT NOT NULL,
	message       TEXT NOT NULL,
	first_attempt INTEGER -- ms since 1970 of a send that may have been accepted
);
CREATE INDEX IF NOT EXISTS outbox_of_a_group ON outbox (message_group, seq)`

const (
	// resendFor is how long after its first attempt a message may be sent again
	// and SQS surely still knows the first one: the five minutes of the
	// deduplication interval, less half a minute for the clocks and the way.
	resendFor = 4*time.Minute + 30*time.Second

	// groupsAtOnce is how many message groups are drained side by side.
	groupsAtOnce = 64
)

// Sender is what an outbox needs of a *sqsfifo.Producer.
type Sender interface {
	SendMessage(context.Context, *sqsfifo.Message) (sqsfifo.Receipt, error)
}

// Outbox is a table of messages that are to be sent. One process at a time drains
// it; any number may add to it.
type Outbox struct {
	db *sql.DB

	// ResendLate sends a message, too, whose first attempt was so long ago that
	// SQS may have forgotten it. It may then be delivered a second time. Without
	// it such a message stops its group with a [*LateError].
	ResendLate bool
}

// LateError says that a message may have been stored by an attempt that SQS no
// longer remembers: to send it now may deliver it twice. The later messages of its
// group wait.
//
// There are two ways out: to check whether the consumer has the dedupe key, and if
// so delete the row; or to set Outbox.ResendLate where consumers recognise
// duplicates by the key.
type LateError struct {
	Seq          int64
	DedupeKey    string
	FirstAttempt time.Time
}

// Error names the row and the ways out.
func (e *LateError) Error() string {
	return fmt.Sprintf("outbox: row %d, dedupe key %q: first sent %s, which SQS may have forgotten; delete the row if the consumer has the key, or set ResendLate if it may get it twice",
		e.Seq, e.DedupeKey, e.FirstAttempt.UTC().Format(time.RFC3339))
}

// Drained counts what a Drain did.
type Drained struct {
	Sent       int // rows that SQS has now
	Duplicates int // of those, known to be stored by an earlier attempt
	Late       int // of those, sent again for ResendLate
}

// New returns the outbox of a database and makes its table if there is none.
func New(ctx context.Context, db *sql.DB) (*Outbox, error) {
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, fmt.Errorf("outbox: create the table: %w", err)
	}
	return &Outbox{db: db}, nil
}

// Add stores a message in the transaction that makes its event true.
func (o *Outbox) Add(ctx context.Context, tx *sql.Tx, msg *sqsfifo.Message) error {
	text, err := json.Marshal(msg)
	if err != nil {
		return fmt.Errorf("outbox: encode dedupe key %q: %w", msg.DedupeKey, err)
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO outbox (message_group, message) VALUES (?, ?)`, msg.Group, string(text))
	if err != nil {
		return fmt.Errorf("outbox: add dedupe key %q: %w", msg.DedupeKey, err)
	}
	return nil
}

// Len returns how many messages have no receipt yet.
func (o *Outbox) Len(ctx context.Context) (n int, err error) {
	err = o.db.QueryRowContext(ctx, `SELECT count(*) FROM outbox`).Scan(&n)
	return n, err
}

// Drain sends what the outbox holds, and what is added meanwhile, until it is
// empty: the messages of a group one after the other in the order in which they
// were added, groups side by side. A row goes away when SQS has answered.
//
// A message that fails stops its group and no other; the error joins one for each
// group that stopped. Call Drain again, within a minute or so, and it goes on
// with the message that failed. One that the producer will never send, such as one
// whose key belongs to another event, stops its group until its row is deleted.
func (o *Outbox) Drain(ctx context.Context, sender Sender) (Drained, error) {
	var (
		mu      sync.Mutex
		all     Drained
		errs    []error
		stopped = map[string]bool{}
	)
	for {
		groups, err := o.groups(ctx)
		groups = slices.DeleteFunc(groups, func(g string) bool { return stopped[g] })
		if err != nil || len(groups) == 0 {
			return all, errors.Join(append(errs, err)...)
		}
		var running sync.WaitGroup
		free := make(chan struct{}, groupsAtOnce)
		for _, g := range groups {
			free <- struct{}{}
			running.Go(func() {
				defer func() { <-free }()
				n, err := o.drainGroup(ctx, sender, g)
				mu.Lock()
				defer mu.Unlock()
				all.Sent, all.Duplicates, all.Late = all.Sent+n.Sent, all.Duplicates+n.Duplicates, all.Late+n.Late
				if err != nil {
					errs = append(errs, err)
					stopped[g] = true
				}
			})
		}
		running.Wait()
	}
}

// drainGroup sends the messages of one group until there is none or one fails.
func (o *Outbox) drainGroup(ctx context.Context, sender Sender, group string) (n Drained, err error) {
	for {
		r, err := o.oldest(ctx, group)
		if err != nil || r == nil {
			return n, err
		}
		receipt, late, err := o.send(ctx, sender, r)
		if err != nil {
			return n, err
		}
		n.Sent++
		if receipt.Duplicate {
			n.Duplicates++
		}
		if late {
			n.Late++
		}
	}
}

// row is a message in the outbox.
type row struct {
	seq     int64
	message sqsfifo.Message
	first   time.Time // of an attempt that may have been accepted, or zero
}

// send sends a row and deletes it when SQS has answered. A crash at any point
// leaves a row that says whether SQS may have the message, and since when.
func (o *Outbox) send(ctx context.Context, sender Sender, r *row) (receipt sqsfifo.Receipt, late bool, err error) {
	now := time.Now()
	late = !r.first.IsZero() && now.Sub(r.first) >= resendFor
	if late && !o.ResendLate {
		return receipt, late, &LateError{Seq: r.seq, DedupeKey: r.message.DedupeKey, FirstAttempt: r.first}
	}
	isFirst := r.first.IsZero()
	if isFirst || late {
		r.first = now
		if err := o.mark(ctx, r, now.UnixMilli()); err != nil {
			return receipt, late, err
		}
	}

	// The producer tries again by itself, for as long as SQS remembers *its* first
	// attempt. This row's may have been earlier, in a process that died.
	trying, cancel := context.WithDeadline(ctx, r.first.Add(resendFor))
	defer cancel()
	receipt, err = sender.SendMessage(trying, &r.message)

	// What is known now is worth keeping, even if the caller no longer waits.
	ctx = context.WithoutCancel(ctx)
	if err == nil {
		_, err = o.db.ExecContext(ctx, `DELETE FROM outbox WHERE seq = ?`, r.seq)
	} else if isFirst && sqsfifo.FateOf(err) == sqsfifo.NotStored {
		err = errors.Join(err, o.mark(ctx, r, nil))
	}
	if err != nil {
		err = fmt.Errorf("outbox: row %d: %w", r.seq, err)
	}
	return receipt, late, err
}

// mark notes when a message was first sent; nil means that it was not.
func (o *Outbox) mark(ctx context.Context, r *row, first any) error {
	if _, err := o.db.ExecContext(ctx, `UPDATE outbox SET first_attempt = ? WHERE seq = ?`, first, r.seq); err != nil {
		return fmt.Errorf("outbox: mark row %d: %w", r.seq, err)
	}
	return nil
}

// oldest returns the first row of a group, nil if there is none.
func (o *Outbox) oldest(ctx context.Context, group string) (*row, error) {
	var (
		r     row
		text  string
		first sql.NullInt64
	)
	err := o.db.QueryRowContext(ctx, `SELECT seq, message, first_attempt FROM outbox WHERE message_group = ? ORDER BY seq LIMIT 1`, group).
		Scan(&r.seq, &text, &first)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("outbox: read group %q: %w", group, err)
	}
	if err := json.Unmarshal([]byte(text), &r.message); err != nil {
		return nil, fmt.Errorf("outbox: row %d is no message: %w", r.seq, err)
	}
	if first.Valid {
		r.first = time.UnixMilli(first.Int64)
	}
	return &r, nil
}

// groups returns the groups that have messages, the one that waits longest first.
func (o *Outbox) groups(ctx context.Context) (groups []string, err error) {
	rows, err := o.db.QueryContext(ctx, `SELECT message_group FROM outbox GROUP BY message_group ORDER BY min(seq)`)
	if err != nil {
		return nil, fmt.Errorf("outbox: list groups: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var g string
		if err := rows.Scan(&g); err != nil {
			return nil, fmt.Errorf("outbox: list groups: %w", err)
		}
		groups = append(groups, g)
	}
	return groups, rows.Err()
}
