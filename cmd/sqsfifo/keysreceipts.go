package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/input"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// sentMessage identifies a message by its body hash and group, which are both in a
// receipt and in a key's record.
type sentMessage struct{ bodyHash, group string }

// sentReceipts has the message ID and the sequence number of each message that SQS stored,
// according to a receipt.
type sentReceipts map[sentMessage]idempotency.Result

// lookUp returns the message ID and the sequence number from the receipt of record r's
// message. It returns false if no receipt is about this message.
func (s sentReceipts) lookUp(r idempotency.Record) (idempotency.Result, bool) {
	if len(s) == 0 {
		return idempotency.Result{}, false
	}
	result, ok := s[sentMessage{sqsfifo.BodyHash(string(r.Body)), r.Group}]
	return result, ok
}

// readReceipts reads a file of receipts that "sqsfifo send" printed. It keeps only receipts
// that prove that the queue has the message. The parameter `queue` is the queue's ARN: a
// proof about another queue, such as that of a rehearsal, is an error.
func readReceipts(file string, stdin io.Reader, queue string) (sentReceipts, error) {
	lines, err := input.Open([]string{file}, stdin, false)
	if err != nil {
		return nil, err
	}
	receipts := sentReceipts{}
	for line, err := range lines.All() {
		if err != nil {
			return nil, err
		}
		var l receiptLine
		if err := json.Unmarshal(line.Text, &l); err != nil {
			return nil, line.Wrong(fmt.Errorf("not a receipt of \"sqsfifo send\": %w", err))
		}
		switch i := slices.Index(everyOutcome, l.Outcome); {
		case i < 0:
			return nil, line.Wrong(fmt.Errorf("outcome: %q is no outcome of a receipt", l.Outcome))
		// Skip the receipt: the event failed or is in doubt or, with Drift, an earlier
		// message of the event was sent, not this one.
		case i >= successes || l.Drift:
		case l.Queue != queue:
			return nil, line.Wrong(fmt.Errorf("queue: the receipt is of %q, and --queue is %q", l.Queue, queue))
		case l.BodyHash == "":
			return nil, line.Wrong(errors.New("body_hash: missing in a receipt of a stored message"))
		default:
			receipts[sentMessage{l.BodyHash, l.Group}] = idempotency.Result{MessageID: l.MessageID, SequenceNumber: l.SequenceNumber}
		}
	}
	return receipts, nil
}
