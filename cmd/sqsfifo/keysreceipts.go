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

// sentMessage identifies a message among the receipts of one queue.
type sentMessage struct{ bodyHash, group string }

// sentReceipts has the results of messages that are in a queue, from receipts.
type sentReceipts map[sentMessage]idempotency.Result

// of returns the result of a key's message.
func (s sentReceipts) of(r idempotency.Record) (idempotency.Result, bool) {
	if len(s) == 0 {
		return idempotency.Result{}, false
	}
	result, ok := s[sentMessage{sqsfifo.BodyHash(string(r.Body)), r.Group}]
	return result, ok
}

// readReceipts reads receipts of "sqsfifo send". It keeps the receipts that prove that SQS
// has the message.
func readReceipts(file string, stdin io.Reader) (sentReceipts, error) {
	lines, err := input.OpenLines([]string{file}, stdin)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	receipts := sentReceipts{}
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return receipts, nil
		}
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
		case i >= successes || l.Drift: // with drift, SQS has other bytes than body_hash
		case l.BodyHash == "":
			return nil, line.Wrong(errors.New("body_hash: missing in a receipt of a stored message"))
		default:
			receipts[sentMessage{l.BodyHash, l.Group}] = idempotency.Result{MessageID: l.MessageID, SequenceNumber: l.SequenceNumber}
		}
	}
}
