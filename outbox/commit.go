package outbox

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqldb"
)

var errDeposed = errors.New("outbox: another relay leads")

// pickBytes limits the total size of the messages in one read of rows: the read ends with
// the message that reaches this size.
const pickBytes = 16 << 20

// groupRange is a group with a range of positions, in the JSON form that the SQL
// statements read.
type groupRange struct {
	Group string `json:"g"`
	From  int64  `json:"f,omitempty"`
	To    int64  `json:"t"`
}

// commit renews the lease, deletes confirmed rows and marks the rows to send next as
// possibly sent, in one transaction. The caller may send the returned rows, because their
// marks are durable. If another relay leads, commit returns errDeposed.
func (t *leadership) commit(ctx context.Context, groups int) (batches []*rowBatch, err error) {
	started := time.Now()
	defer func() { t.spent(time.Since(started)) }()
	ctx, cancel := context.WithTimeout(ctx, t.config.Lease)
	defer cancel()
	conn, err := t.outbox.config.DB.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	tx, err := conn.BeginTx(ctx, t.outbox.config.Dialect.TxOptions())
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	s := &t.outbox.sql

	// Update the leader's row first. This locks the row, so no other relay can take over
	// until the commit.
	requestedAt := t.clock.Now()
	var now, seen, oldest int64
	var plan, jit string
	err = tx.QueryRowContext(ctx, s.renew, t.fence, t.token, t.config.Lease.Microseconds()).Scan(&now, &seen, &oldest, &plan, &jit)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, errDeposed
	}
	if err == nil {
		err = schema.CheckOldest(oldest)
	}
	if err != nil {
		return nil, err
	}
	if err := t.watchClock(ctx, tx, now, seen, now+t.config.Lease.Microseconds()); err != nil {
		return nil, err
	}
	if len(t.toRemove) > 0 {
		if err := t.outbox.remove(ctx, tx, t.toRemove); err != nil {
			return nil, err
		}
	}
	if len(t.toUnmark) > 0 {
		ranges := make([]groupRange, 0, len(t.toUnmark))
		for g, to := range t.toUnmark {
			ranges = append(ranges, groupRange{Group: g, To: to})
		}
		if _, err := tx.ExecContext(ctx, s.unmarkAfter, toJSON(ranges)); err != nil {
			return nil, err
		}
	}
	var p decisions
	var cursor string
	if groups > 0 {
		rows, next, err := t.pick(ctx, tx, groups)
		if err != nil {
			return nil, err
		}
		cursor, p = next, t.plan(rows, requestedAt, now)
		if len(p.toMark) > 0 {
			if _, err := tx.ExecContext(ctx, s.mark, toJSON(p.toMark), now); err != nil {
				return nil, err
			}
		}
	}
	if err := tx.Commit(); err != nil {
		// The connection may still be in the transaction. ErrBadConn makes package sql
		// close the connection.
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		// The database may have committed the marks despite the error. These rows will not
		// be sent now. Let the next commit remove the marks, except from rows that were
		// possibly sent before.
		for _, b := range p.batches {
			if b.untried {
				t.unmarkAfter(b.group, b.rows[0].position-1)
			}
		}
		return nil, err
	}
	t.recordRenewal(requestedAt)
	t.meters.countRemoved(t.toRemove)
	t.toRemove = append(t.toRemove[:0], p.completions...)
	clear(t.toUnmark)
	if groups > 0 {
		t.cursor = cursor
		t.moreWaiting = len(p.completions) > 0 || p.bytes >= pickBytes
	}
	t.recordLate(p.late)
	return p.batches, nil
}

// pick reads the first rows of up to n groups, except the groups returned by busy. It
// starts after the group t.cursor, so that all groups get their turn. The result `cursor`
// becomes t.cursor after the commit.
func (t *leadership) pick(ctx context.Context, tx *sql.Tx, n int) (rows []pickedRow, cursor string, err error) {
	busy := t.busy()
	rows, err = t.pickAfter(ctx, tx, t.cursor, busy, n)
	if err != nil {
		return nil, "", err
	}
	got := map[string]bool{}
	for _, r := range rows {
		got[r.group] = true
	}
	if t.cursor == "" || len(got) >= n {
		return rows, lastGroup(rows), nil
	}
	for g := range got {
		busy = append(busy, g)
	}
	more, err := t.pickAfter(ctx, tx, "", busy, n-len(got))
	return append(rows, more...), lastGroup(more), err
}

func lastGroup(rows []pickedRow) string {
	if len(rows) == 0 {
		return ""
	}
	return rows[len(rows)-1].group
}

func (t *leadership) pickAfter(ctx context.Context, tx *sql.Tx, cursor string, busy []string, n int) (out []pickedRow, err error) {
	err = sqldb.Each(ctx, tx, func(rows *sql.Rows) error {
		var f pickedRow
		err := rows.Scan(&f.group, &f.position, &f.message, &f.hash, &f.markedFrom, &f.markedTo, &f.firstAttempt)
		out = append(out, f)
		return err
	}, t.outbox.sql.pick, cursor, toJSON(busy), n+len(busy), n, t.config.GroupRows, pickBytes)
	return out, err
}

// anyWaiting reports whether any group, except the groups of busy(), has rows to send. It
// only reads the database.
func (t *leadership) anyWaiting(ctx context.Context) (bool, error) {
	started := time.Now()
	defer func() { t.spent(time.Since(started)) }()
	ctx, cancel := context.WithTimeout(ctx, t.config.Lease)
	defer cancel()
	busy := t.busy()
	var n int
	err := t.outbox.read(ctx, func(q queryer) error {
		return q.QueryRowContext(ctx, t.outbox.sql.waiting, "", toJSON(busy), len(busy)+1, 1).Scan(&n)
	})
	return n > 0, err
}

// decisions is the result of the method `plan`.
type decisions struct {
	batches     []*rowBatch
	toMark      []groupRange
	completions []completion
	// late has the first row of each group to be held. Each of these rows is possibly in SQS,
	// and too old for a resend.
	late  []pickedRow
	bytes int // total size of the messages in all batches
}

// plan decides for each group whether its rows are sent, removed without a send, or held.
// The rows of a group are adjacent and sorted by position. The parameter `now` is the current
// time of the database's clock, in microseconds since 1970. The relay read requestedAt from
// its own clock before the database read `now`, so a deadline counted from requestedAt is
// not too late.
func (t *leadership) plan(rows []pickedRow, requestedAt clock.Instant, now int64) (p decisions) {
	for len(rows) > 0 {
		head := rows[0]
		n := 1
		for n < len(rows) && rows[n].group == head.group {
			n++
		}
		group := rows[:n]
		rows = rows[n:]

		untried := head.position < head.markedFrom || head.position > head.markedTo
		left := t.outbox.config.ResendFor
		if !untried {
			left -= time.Duration(now-head.firstAttempt) * time.Microsecond
			// Resend the rows that were possibly sent before: up to position head.markedTo.
			// New rows wait until SQS has confirmed the resends.
			for len(group) > 1 && group[len(group)-1].position > head.markedTo {
				group = group[:len(group)-1]
			}
		}
		late := left <= 0
		if late {
			switch t.outbox.config.Late {
			case LateHold:
				p.late = append(p.late, head)
				continue
			case LateAssumeSent:
				for _, r := range group {
					p.completions = append(p.completions, completion{Group: r.group, Position: r.position, Outcome: OutcomeAssumedSent})
				}
				continue
			case LateResend:
				left = t.outbox.config.ResendFor
			}
		}
		b := &rowBatch{group: head.group, deadline: requestedAt.Add(left), untried: untried}
		for _, r := range group {
			b.rows = append(b.rows, r.row)
			p.bytes += len(r.message)
		}
		if untried || late {
			p.toMark = append(p.toMark, groupRange{Group: b.group, From: head.position, To: max(head.markedTo, b.rows[len(b.rows)-1].position)})
		}
		p.batches = append(p.batches, b)
	}
	return p
}
