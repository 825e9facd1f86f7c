package outbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// row is a message in the table.
type row struct {
	position int64
	message  []byte
	hash     []byte
}

// rowBatch has consecutive rows of one group, to be sent one after another. The database
// has already marked the rows as possibly sent.
type rowBatch struct {
	group string
	rows  []row

	// deadline is the end of the time in which SQS certainly recognises a resend of a row
	// as a duplicate.
	deadline clock.Instant

	ctx context.Context // ends at the deadline, or earlier if the lease ends
	end context.CancelFunc

	// untried is true if no row of the batch had the mark "possibly sent" before the
	// batch.
	untried bool

	// receipts has one receipt for each confirmed row, in order. err is the error of the
	// next row, or nil.
	receipts []sqsfifo.Receipt
	err      error
	key      string // dedupe key of the failed row
}

// CorruptError reports a row that differs from the message that Add stored. The row is
// not sent, and its group stops.
type CorruptError struct {
	Group    string
	Position int64
	Err      error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("outbox: not sent: group %s, position %d: the row is not what Add stored: %v; restore it, or call Resolve with ResolutionGiveUp", e.Group, e.Position, e.Err)
}

// Unwrap returns Err.
func (e *CorruptError) Unwrap() error { return e.Err }

var errBodyHash = errors.New("the SHA-256 of the body is not body_hash")

func decode(message, hash []byte) (*sqsfifo.Message, error) {
	m := new(sqsfifo.Message)
	if err := json.Unmarshal(message, m); err != nil {
		return nil, err
	}
	if sum := sha256.Sum256([]byte(m.Body)); !bytes.Equal(sum[:], hash) {
		return nil, errBodyHash
	}
	return m, nil
}

func (b *rowBatch) message(r *row) (*sqsfifo.Message, error) {
	m, err := decode(r.message, r.hash)
	if err == nil && m.Group != b.group {
		err = fmt.Errorf("the message is of group %q", m.Group)
	}
	if err != nil {
		return nil, &CorruptError{Group: b.group, Position: r.position, Err: err}
	}
	return m, nil
}

// sendNext sends the next row of a batch, or ends the batch. When the sender has answered,
// its callback puts the batch into t.readyBatches for another call of sendNext.
func (t *leadership) sendNext(b *rowBatch) {
	i := len(b.receipts)
	if b.err != nil || i == len(b.rows) || !t.mayBegin(b, i) {
		b.end()
		t.finishedBatches <- b
		return
	}
	m, err := b.message(&b.rows[i])
	if err != nil {
		b.err = err
		b.end()
		t.finishedBatches <- b
		return
	}
	t.config.Sender.SendMessageAsync(b.ctx, m, func(receipt sqsfifo.Receipt, err error) {
		if err != nil {
			b.err, b.key = err, m.DedupeKey
		} else {
			b.receipts = append(b.receipts, receipt)
		}
		t.readyBatches <- b
	})
}

var errTooLate = errors.New("outbox: SQS may not recognise another attempt")

// fate says whether SQS stored the message of the row whose send failed: yes, no, or
// unknown.
func (b *rowBatch) fate() sqsfifo.Fate {
	var corrupt *CorruptError
	if errors.As(b.err, &corrupt) {
		return sqsfifo.FateNotStored
	}
	return sqsfifo.FateOf(b.err)
}

func (b *rowBatch) completions() []completion {
	out := make([]completion, len(b.receipts))
	for i, r := range b.receipts {
		outcome := OutcomeSent
		if r.Duplicate {
			outcome = OutcomeDuplicate
		}
		out[i] = completion{b.group, b.rows[i].position, outcome, r.MessageID, r.SequenceNumber}
	}
	return out
}

// mayBeStored returns the position of the last row that may be in SQS: the last confirmed
// row, or the failed row after it if SQS may have stored the failed row.
func (b *rowBatch) mayBeStored() int64 {
	last := b.rows[0].position - 1 + int64(len(b.receipts))
	if b.err != nil && b.fate() != sqsfifo.FateNotStored {
		last++
	}
	return last
}
