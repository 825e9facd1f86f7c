package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// oldOperation marks the keys in a journal of an earlier version of the command. That
// version did not use the journal as the producer's store, so openSendJournal refuses
// such a journal.
const oldOperation = "sqsfifo.send"

// openSendJournal opens the journal at the path and returns it as a producer's store. The
// function end closes the journal.
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
	// Use the hash of the path, because the path may be too long for an owner name.
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
