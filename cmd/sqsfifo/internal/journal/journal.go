// Package journal remembers what a command has sent, across crashes of it.
//
// Problem: a command that is killed while it sends does not know which of its messages
// SQS has. Sent again with other bytes, or after five minutes, a message is delivered
// twice; not sent again, it is lost.
//
// Guarantee: a message, with the bytes that are to be sent, is durable before the first
// attempt ([Journal.Claim]). A later run gets those bytes back. It is told what was sent
// and is proven; what may have been sent and may be sent again, because SQS still
// recognises it; and what may have been sent and may not be sent again. It is never told
// to send a message that SQS might deliver twice.
//
// Limits: one process at a time. The clock of the machine says when a resend is too late:
// if it was set back between two runs, by that much later.
package journal

import (
	"context"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// MaxBatch is the largest number of messages in one Claim.
const MaxBatch = idempotency.MaxBatch

// Journal is what the command send needs of its memory. The context of a call ends the
// wait, and not what was begun.
type Journal interface {
	// Claim makes up to [MaxBatch] messages durable and says what to do with each. An
	// error means that none of them may be sent.
	Claim(ctx context.Context, messages []*sqsfifo.Message) ([]Entry, error)

	// Settle records what became of a message that was to be sent. It may be called
	// from several goroutines at once.
	Settle(ctx context.Context, e Entry, r sqsfifo.Receipt, err error) error

	// Close waits for the calls under way.
	Close() error
}

// Verdict says what to do with a message.
type Verdict uint8

const (
	// Send: the message may be sent, within Entry.ResendBefore.
	Send Verdict = iota + 1

	// Sent: an earlier run has proof that SQS has it.
	Sent

	// Unknown: an earlier run may have sent it, and SQS might take it for a new message
	// by now. It must not be sent unless that is accepted.
	Unknown

	// Conflict: the dedupe key was used for another payload. It must not be sent.
	Conflict
)

// Entry is what the journal says of a message.
type Entry struct {
	Verdict Verdict

	// Message is to be sent: its body and group are those of the first run.
	Message *sqsfifo.Message

	// Drift says that the message that was claimed has other bytes than Message, for the
	// same payload.
	Drift bool

	// ResendBefore is when sending ends being safe, because an earlier run may have sent
	// the message. It is the zero time if none has.
	ResendBefore time.Time

	// Since is when the message was claimed first.
	Since time.Time

	// MessageID and SequenceNumber are those of a message that was sent.
	MessageID, SequenceNumber string

	outcome idempotency.Outcome
}
