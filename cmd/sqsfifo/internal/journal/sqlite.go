package journal

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/uuid"
	_ "modernc.org/sqlite" // the driver

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

// ResendFor is how long after its claim a message may be sent again. An attempt that
// begins then reaches SQS within 20 s, and so within the five minutes in which SQS
// recognises an attempt that was made after the claim.
const ResendFor = 275 * time.Second

// InUseError is a journal that another process has.
type InUseError struct{ Path string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("%s is in use by another process; wait for its end, or use another journal", e.Path)
}

// file is a journal in a SQLite database.
type file struct {
	db       *sql.DB
	store    *sqlstore.Store
	lock     *flock.Flock
	queueURL string
	run      [16]byte // this process, in tokens
	resend   bool     // what is unknown, too
}

// Open opens or makes the journal at a path, for messages to one queue. With
// resendUnknown a message that may have been sent is to be sent again at any time.
func Open(ctx context.Context, path, queueURL string, resendUnknown bool) (Journal, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(absolute); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder; name a file", path)
	}
	f := &file{queueURL: queueURL, resend: resendUnknown, lock: flock.New(absolute + ".lock")}
	_, _ = rand.Read(f.run[:]) // never fails (crypto/rand)
	locked, err := f.lock.TryLock()
	if err != nil {
		return nil, err
	}
	if !locked {
		return nil, &InUseError{path}
	}
	if err := f.open(ctx, absolute); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return f, nil
}

func (f *file) open(ctx context.Context, path string) error {
	name := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: url.Values{
		"_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(10000)"},
	}.Encode()}
	var err error
	if f.db, err = sql.Open("sqlite", name.String()); err != nil {
		return err
	}
	if err := sqlstore.Migrate(ctx, f.db, sqlstore.SQLite); err != nil {
		return err
	}
	f.store, err = sqlstore.Open(ctx, sqlstore.Config{DB: f.db, Dialect: sqlstore.SQLite})
	return err
}

func (f *file) Close() error {
	var errs []error
	if f.store != nil {
		errs = append(errs, f.store.Close())
	}
	if f.db != nil {
		errs = append(errs, f.db.Close())
	}
	return errors.Join(append(errs, f.lock.Unlock())...)
}

// inside are the members of a body that say what it is.
type inside struct {
	EventID     uuid.UUID       `json:"event_id"`
	EventSource string          `json:"event_source"`
	Payload     json.RawMessage `json:"payload"`
}

const operation = "sqsfifo.send"

func (f *file) claim(m *sqsfifo.Message) (idempotency.Claim, error) {
	var is inside
	if err := json.Unmarshal([]byte(m.Body), &is); err != nil {
		return idempotency.Claim{}, fmt.Errorf("the body of event %s: %w", m.EventID, err)
	}
	key := idempotency.Key{Scope: idempotency.JoinScope(f.queueURL, is.EventSource), Operation: operation, Value: m.DedupeKey}
	// One for each event and process: the same event once more in this run renews its
	// claim, and one of an earlier run is taken over.
	id := key.ID()
	token := sha256.Sum256(append(f.run[:], id[:]...))
	body := []byte(m.Body)
	return idempotency.Claim{
		Key: key, Token: idempotency.Token(token[:16]),
		Fingerprint: idempotency.FingerprintOf(operation+"/1", is.Payload),
		Seal:        idempotency.SealOf(body, m.Group), Group: m.Group, Body: body,
		// Nobody else has the journal, so that a lease need not keep others away.
		Terms:    idempotency.Terms{Lease: time.Millisecond, TTL: idempotency.Forever, ResendFor: ResendFor},
		RunAgain: f.resend,
	}, nil
}

func (f *file) Claim(ctx context.Context, messages []*sqsfifo.Message) ([]Entry, error) {
	claims := make([]idempotency.Claim, len(messages))
	for i, m := range messages {
		var err error
		if claims[i], err = f.claim(m); err != nil {
			return nil, err
		}
	}
	// Two lines with one event are one claim after the other.
	outcomes, err := f.store.ClaimBatch(ctx, claims)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(messages))
	for i, m := range messages {
		if entries[i], err = f.entry(m, outcomes[i]); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func (f *file) entry(m *sqsfifo.Message, o idempotency.Outcome) (Entry, error) {
	r := o.Record
	e := Entry{Message: m, Drift: o.Drift, Since: r.DoubtSince, outcome: o}
	switch o.Decision {
	case idempotency.New:
		e.Verdict = Send
		return e, nil
	case idempotency.Renewed, idempotency.Reclaimed:
		e.Verdict = Send
		if o.Decision == idempotency.Reclaimed && !f.resend {
			e.ResendBefore = r.ResendUntil
		}
	case idempotency.Duplicate:
		e.Verdict, e.MessageID, e.SequenceNumber, e.Since = Sent, r.Result.MessageID, r.Result.SequenceNumber, r.Created
	case idempotency.Indeterminate:
		e.Verdict = Unknown
	case idempotency.Conflict:
		e.Verdict, e.Since = Conflict, r.Created
		return e, nil
	default:
		return e, o.Err(r.Key)
	}
	// The bytes of the first run win.
	var is inside
	if err := json.Unmarshal(r.Body, &is); err != nil {
		return e, fmt.Errorf("the stored body of event %s: %w", m.EventID, err)
	}
	stored := *m
	stored.Body, stored.Group, stored.EventID = string(r.Body), r.Group, is.EventID
	e.Message = &stored
	return e, nil
}

func (f *file) Settle(ctx context.Context, e Entry, r sqsfifo.Receipt, sendErr error) error {
	var err error
	switch sqsfifo.FateOf(sendErr) {
	case sqsfifo.Stored:
		err = f.store.Complete(ctx, e.outcome.Ref(), idempotency.Result{MessageID: r.MessageID, SequenceNumber: r.SequenceNumber})
	case sqsfifo.NotStored:
		// An earlier run may still have stored it, and then the event stays unknown.
		err = f.store.Fail(ctx, e.outcome.Ref(), idempotency.Failure{Proof: idempotency.ProvenForClaim, Reason: "not stored"})
	default:
		err = f.store.Fail(ctx, e.outcome.Ref(), idempotency.Failure{Proof: idempotency.NoProof, Reason: sqsfifo.FateOf(sendErr).String()})
	}
	var stale *idempotency.StaleClaimError
	if errors.As(err, &stale) && stale.Status == idempotency.Succeeded {
		return nil // the event stood on two lines
	}
	return err
}
