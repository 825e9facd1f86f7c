package sqlstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
)

// hider replaces the scope and the value of a ledger entry's key by hashes made with
// [Config.LedgerSecret]. A nil hider changes nothing. It is a function, so that printing
// a Store with %+v does not show the secret.
type hider func(idempotency.Key) idempotency.Key

func (h hider) key(k idempotency.Key) idempotency.Key {
	if h == nil {
		return k
	}
	return h(k)
}

// newHider returns a function that replaces scopes and values of keys in the ledger by
// HMACs with c.LedgerSecret, or nil without a secret. newHider removes the secret from c.
func newHider(c *Config) (hider, error) {
	if c.LedgerSecret == nil {
		return nil, nil
	}
	secret := slices.Clone(c.LedgerSecret)
	c.LedgerSecret = nil
	if !c.Ledger {
		return nil, wrong("Config.LedgerSecret", "set", "it is for the ledger; set Config.Ledger, too")
	}
	if err := ledger.CheckSecret(secret); err != nil {
		var invalid *idempotency.InvalidError
		if errors.As(err, &invalid) {
			return nil, wrong("Config.LedgerSecret", "", invalid.Rule)
		}
		return nil, err
	}
	return func(k idempotency.Key) idempotency.Key { return ledger.Hide(secret, k) }, nil
}

// number identifies the secret of a hider, for table idempotency_meta. The number of a nil
// hider is 0.
func (h hider) number() (n int64) {
	if h != nil {
		sum := sha256.Sum256([]byte(h.key(idempotency.Key{}).Scope)) // no key has the empty scope
		n = int64(binary.BigEndian.Uint64(sum[:]) >> 1)
	}
	return n
}

// checkHiding returns an error if the keys in the database's ledger must be hidden. It is
// for writers without Config.LedgerSecret: they cannot hide keys.
func checkHiding(ctx context.Context, q queryer) error {
	marked, err := hasMark(ctx, q, "ledger_secret")
	if marked {
		return wrong("Config.LedgerSecret", "nil", "the ledger of the database hides keys with a secret; set it")
	}
	return err
}

// hasMark reports whether table idempotency_meta has a row with the name. openLedger()
// adds such rows: "ledger" if the database has a ledger, "ledger_secret" if its keys are
// hidden. The value of the latter is the number of the secret, or 1 if it is unknown.
func hasMark(ctx context.Context, q queryer, name string) (bool, error) {
	var n int64
	if err := q.QueryRowContext(ctx, `SELECT count(*) FROM idempotency_meta WHERE name = '`+name+`'`).Scan(&n); err != nil {
		return false, fmt.Errorf("sqlstore: ledger: %w", err)
	}
	return n > 0, nil
}
