package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
)

// ErrOtherSealer: another sealer has the lease. Nothing was sealed by this one.
var ErrOtherSealer = errors.New("another sealer has the lease")

// SealerConfig configures a [Sealer]. Only Ledger is required.
type SealerConfig struct {
	Ledger *Ledger

	// Holder names the process in the row of the sealer. Empty means the name of the
	// machine and the process ID.
	Holder string

	// Interval is how long Run waits when everything is sealed. Zero means 1 s.
	Interval time.Duration

	// Lease is how long others wait for a sealer that has died. Zero means 10 s; it is
	// more than Interval.
	Lease time.Duration

	// Sink keeps a head where those who can write to the database cannot. Run calls it
	// from one goroutine with each head that it finds, which may leave out some, and again
	// after an error. Nil means none: then the log is what keeps them.
	Sink func(context.Context, ledger.Head) error

	// Logger gets a record for each head and for each error. Nil means none.
	Logger *slog.Logger
}

// Sealer seals the entries of a ledger in PostgreSQL and exports the heads. On SQLite,
// where each transaction seals, it only exports them. Several may run in several
// processes: one of them works, and another takes over when it ends.
type Sealer struct {
	config SealerConfig
	token  idempotency.Token
}

// NewSealer returns a sealer, or a [*SettingError].
func NewSealer(c SealerConfig) (*Sealer, error) {
	if c.Ledger == nil {
		return nil, &SettingError{Setting: "SealerConfig.Ledger", Found: "nil", Rule: "use Store.Ledger of a store with Config.Ledger, or OpenLedger"}
	}
	if c.Interval == 0 {
		c.Interval = time.Second
	}
	if c.Lease == 0 {
		c.Lease = max(10*time.Second, 3*c.Interval)
	}
	if c.Interval < 0 || c.Lease <= c.Interval {
		return nil, &SettingError{Setting: "SealerConfig", Found: fmt.Sprintf("Interval %v, Lease %v", c.Interval, c.Lease), Rule: "want an interval that is not negative, and a longer lease"}
	}
	if c.Holder == "" {
		host, _ := os.Hostname()
		c.Holder = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Sealer{config: c, token: idempotency.NewToken()}, nil
}

// Seal seals all entries whose transactions, and all that began before them, have ended,
// and returns the head. If another sealer has the lease it returns [ErrOtherSealer].
func (k *Sealer) Seal(ctx context.Context) (ledger.Head, error) {
	if k.config.Ledger.dialect == SQLite {
		return k.config.Ledger.Head(ctx)
	}
	for {
		head, more, err := k.postgresSeal(ctx)
		if err != nil {
			return ledger.Head{}, fmt.Errorf("sqlstore: seal: %w", err)
		}
		if !more {
			return head, nil
		}
	}
}

// Run seals and exports heads until ctx ends, and returns nil then. It goes on after
// errors, which are logged.
func (k *Sealer) Run(ctx context.Context) error {
	var kept ledger.Head
	for ctx.Err() == nil {
		if head, err := k.Seal(ctx); err == nil {
			kept = k.keep(ctx, head, kept)
		} else if !errors.Is(err, ErrOtherSealer) && ctx.Err() == nil {
			k.config.Logger.Error("ledger: not sealed", "holder", k.config.Holder, "error", err)
		}
		_ = pause(ctx, k.config.Interval)
	}
	if k.config.Ledger.dialect == PostgreSQL {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.config.Lease)
		defer cancel()
		if err := k.resign(ending); err != nil {
			k.config.Logger.Error("ledger: the lease was not given back", "holder", k.config.Holder, "error", err)
		}
	}
	return nil
}

// keep exports a head that is not the last one that was, and returns the last.
func (k *Sealer) keep(ctx context.Context, head, kept ledger.Head) ledger.Head {
	if head == kept {
		return kept
	}
	if k.config.Sink != nil {
		if err := k.config.Sink(ctx, head); err != nil {
			k.config.Logger.Error("ledger: the head was not kept", "head", head, "error", err)
			return kept
		}
	}
	k.config.Logger.Info("ledger: sealed", "head", head)
	return head
}
