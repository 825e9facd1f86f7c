package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// oldOperation is the operation of keys in a journal of an earlier version of the command.
// openSendJournal refuses such a journal, because its keys name events in another way.
const oldOperation = "sqsfifo.send"

// openSendJournal opens the journal at the path and returns it as a producer's store. The
// function `end` closes the journal.
func openSendJournal(ctx context.Context, path string, resend bool) (_ sqsfifo.StoreConfig, end func() error, err error) {
	var none sqsfifo.StoreConfig
	j, err := openJournal(ctx, path)
	if err != nil {
		return none, nil, err
	}
	var old bool
	if err := j.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM idempotency_keys WHERE operation_type = ?)`, oldOperation).Scan(&old); err != nil {
		return none, nil, errors.Join(fmt.Errorf("%s: %w", path, err), j.Close())
	}
	if old {
		return none, nil, errors.Join(fmt.Errorf("%s is a journal of an earlier version of this command, which names events in another way; finish its events with that version, then use a new file", path), j.Close())
	}
	// The owner is named by the journal's path. An owner name has at most 200 bytes, so
	// use a hash.
	c := sqsfifo.StoreConfig{Store: j.store, Owner: sqsfifo.BodyHash(j.path), TTL: idempotency.Forever}
	if resend {
		c.Unresolved = sqsfifo.UnresolvedResend
	}
	end = func() error {
		if err := j.Close(); err != nil {
			return fmt.Errorf("--journal: %w", err)
		}
		return nil
	}
	return c, end, nil
}
