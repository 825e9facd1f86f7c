package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

type keysSettleCmd struct {
	As             string `required:"" enum:"succeeded,failed" placeholder:"OUTCOME" help:"succeeded: it took effect. failed: no attempt did, and it may run again."`
	Response       string `placeholder:"FILE" help:"With succeeded: the response that duplicates get, byte for byte."`
	MessageID      string `placeholder:"ID" help:"With succeeded: SQS's ID of the message."`
	SequenceNumber string `placeholder:"N" help:"With succeeded: SQS's sequence number of the message."`
	Reason         string `placeholder:"TEXT" help:"With failed: how that was found out. It is kept; no payload, no secrets."`
	Yes            bool   `help:"Do it. Without it the key is shown and nothing is changed."`
	JSON           bool   `name:"json" help:"Print one JSON object: id and settled_as, or without --yes the key."`

	Database string `arg:"" help:"File of a SQLite database, or a postgres:// URL."`
	ID       string `arg:"" help:"ID of the key, or its first digits."`
}

// Help returns the manual of the command.
func (*keysSettleCmd) Help() string {
	return `Records what became of a key that is held, after somebody has found out whether it took effect, and that no attempt is still under way: a request that arrives later takes effect later.

Nothing is changed without --yes, nor if anybody has claimed or settled the key since it was read.

The exit code is 0 if it is settled, 2 if nothing was changed.

Examples:

	sqsfifo keys settle scenes.db 6f1d0c2b --as succeeded --message-id 5fea7756-0ea4-451a-a703-a558b933e274 --yes
	sqsfifo keys settle payments.db 6f1d0c2b --as failed --reason 'not in the ledger of the bank' --yes`
}

// transition returns the ending described by the flags.
func (c *keysSettleCmd) transition() (idempotency.Ending, error) {
	if c.As == "failed" {
		if c.Response != "" || c.MessageID != "" || c.SequenceNumber != "" {
			return idempotency.Ending{}, errors.New("--response, --message-id and --sequence-number are of what succeeded; --as failed takes --reason")
		}
		return idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProvenForAll, Reason: c.Reason}), nil
	}
	if c.Reason != "" {
		return idempotency.Ending{}, errors.New("--reason is of what failed")
	}
	result := idempotency.Result{MessageID: c.MessageID, SequenceNumber: c.SequenceNumber}
	if c.Response != "" {
		var err error
		if result.Response, err = os.ReadFile(c.Response); err != nil {
			return idempotency.Ending{}, fmt.Errorf("--response: %w", err)
		}
	}
	return idempotency.Completed(result), nil
}

func (c *keysSettleCmd) run(ctx context.Context, std stdio) (int, error) {
	transition, err := c.transition()
	if err != nil {
		return exitFailed, err
	}
	return withStore(ctx, c.Database, func(store *sqlstore.Store) (int, error) {
		found, err := findKey(ctx, store, c.ID)
		if err != nil {
			return exitFailed, err
		}
		if state := stateOf(found); state != "held" {
			return exitFailed, fmt.Errorf("key %.*s is %s and not held; nothing was changed", shortID, found.Key.ID().String(), state)
		}
		if !c.Yes {
			if err := showRecord(std.out, recordLine(found), c.JSON); err != nil {
				return exitFailed, err
			}
			return exitFailed, errors.New("nothing was changed; --yes settles it")
		}
		if err := idempotency.Resolve(ctx, store, found, transition); err != nil {
			return exitFailed, err
		}
		id := found.Key.ID().String()
		err = printLine(std.out, c.JSON, settledKey{id, c.As}, fmt.Sprintf("key %.*s: settled as %s", shortID, id, c.As))
		return exitFailedIf(err), err
	})
}

// settledKey is the stable form of --json.
type settledKey struct {
	ID string `json:"id"`
	As string `json:"settled_as"`
}
