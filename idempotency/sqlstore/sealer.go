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
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// ErrOtherSealer reports that another sealer has the lease. This sealer sealed nothing.
var ErrOtherSealer = errors.New("another sealer has the lease")

// SealerConfig configures a [Sealer]. Only Ledger is required.
type SealerConfig struct {
	Ledger *Ledger

	// Holder names this process in table idempotency_sealer. Empty means host name and
	// process ID.
	Holder string

	// Interval is the pause of Run between two calls of Seal. Zero means 1 s.
	Interval time.Duration

	// Lease is the time after which another sealer takes over if this sealer has died. It
	// must be longer than Interval. Zero means 10 s, or three times Interval if that is
	// longer.
	Lease time.Duration

	// Sink stores a head of the ledger (the number and hash of its last seal) in a place
	// out of reach of the database's writers. With such a head, [Ledger.Verify] can prove
	// that the ledger up to this seal is unchanged. If Sink is nil, heads are only
	// logged.
	//
	// Run calls Sink from one goroutine, with the latest head; it may skip earlier heads.
	// If Sink returns an error, Run calls Sink again after the time Interval, with the
	// head that is then the latest.
	Sink func(context.Context, ledger.Head) error

	// Logger receives a record for each new head of the ledger (the number and hash of
	// its last seal), and for each error. Nil disables logging.
	Logger *slog.Logger
}

// Sealer writes seals, with the hashes of new ledger entries, on PostgreSQL. It also gives
// the number and hash of the last seal (the head) to [SealerConfig].Sink. On SQLite, each
// transaction writes its seal, and a Sealer only serves the Sink.
//
// Several processes may run a Sealer. On PostgreSQL only one of them works at a time: it
// has a lease in the database. After it has stopped or its lease has expired, another
// process takes over.
type Sealer struct {
	config SealerConfig
	token  idempotency.Token
}

// NewSealer returns a Sealer for the ledger in c. It returns an
// [*idempotency.InvalidError] if c is invalid.
func NewSealer(c SealerConfig) (*Sealer, error) {
	if c.Ledger == nil {
		return nil, wrong("SealerConfig.Ledger", "nil", "use Store.Ledger of a store with Config.Ledger, or OpenLedger")
	}
	if c.Interval == 0 {
		c.Interval = time.Second
	}
	if c.Lease == 0 {
		c.Lease = max(10*time.Second, 3*c.Interval)
	}
	if c.Interval < 0 || c.Lease <= c.Interval {
		return nil, wrong("SealerConfig", fmt.Sprintf("Interval %v, Lease %v", c.Interval, c.Lease), "want an interval that is not negative, and a longer lease")
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

// Seal seals new ledger entries in the order in which their transactions began to write.
// It stops at the first transaction that is still open, because an open transaction may
// add entries. Seal returns the head of the ledger, or [ErrOtherSealer] if another sealer
// has the lease.
//
// On SQLite, Seal only returns the head.
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

// Run calls [Sealer.Seal] with pauses of SealerConfig.Interval, and passes each new head
// (number and hash of the last seal) to SealerConfig.Sink. Run logs errors and continues.
// When ctx ends, Run returns nil.
func (k *Sealer) Run(ctx context.Context) error {
	var exported ledger.Head
	for ctx.Err() == nil {
		if head, err := k.Seal(ctx); err == nil {
			exported = k.exportHead(ctx, head, exported)
		} else if !errors.Is(err, ErrOtherSealer) && ctx.Err() == nil {
			k.config.Logger.Error("ledger: not sealed", "holder", k.config.Holder, "error", err)
		}
		_ = clock.Sleep(ctx, k.config.Interval)
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

// exportHead passes the ledger's head, the parameter `current`, to SealerConfig.Sink, and
// logs the head. If Sink is nil, exportHead only logs the head. The parameter `stored` is
// the last head that was passed and logged without an error: if the two heads are equal,
// exportHead does nothing. The result is the new value of `stored`.
func (k *Sealer) exportHead(ctx context.Context, current, stored ledger.Head) ledger.Head {
	if current == stored {
		return stored
	}
	if k.config.Sink != nil {
		if err := k.config.Sink(ctx, current); err != nil {
			k.config.Logger.Error("ledger: the head was not kept", "head", current, "error", err)
			return stored
		}
	}
	k.config.Logger.Info("ledger: sealed", "head", current)
	return current
}
