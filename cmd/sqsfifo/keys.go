package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

type keysCmd struct {
	List    keysListCmd    `cmd:"" help:"List keys, or the keys whose outcome nobody knows."`
	Show    keysShowCmd    `cmd:"" help:"Show what the store knows of a key."`
	Resolve keysResolveCmd `cmd:"" help:"Record the outcome of unresolved keys: of one, of many, or from receipts."`
}

func (*keysCmd) Help() string {
	return `Works on an idempotency store (package idempotency) in a database, such as the journal of "sqsfifo send". DATABASE is the file of a SQLite database or a URL such as postgres://USER@HOST/DATABASE?search_path=SCHEMA; a password is better kept in PGPASSWORD or ~/.pgpass than in the URL. The database must have its store already: nothing is created.

A key has one of five states:

	succeeded   the operation took effect
	failed      the operation had no effect, and may run again
	running     a process works on the operation
	in_doubt    an attempt may have taken effect, and a resend is safe
	unresolved  an attempt may have taken effect, and a resend might take effect twice. An operator resolves it

Examples:

	sqsfifo keys list payments.db --unresolved
	sqsfifo keys show payments.db 6f1d0c2b
	sqsfifo keys resolve payments.db 6f1d0c2b --as no_effect --reason 'not in the ledger of the bank' --yes`
}

// keyRecord is the JSON form of a record of the idempotency store. Member names are stable.
type keyRecord struct {
	ID        string `json:"id"`
	Scope     string `json:"scope"`
	Operation string `json:"operation"`
	Value     string `json:"value"`
	State     string `json:"state"` // one of the states of stateOf

	Generation  int64     `json:"generation"`
	Attempts    int64     `json:"attempts"`
	Group       string    `json:"group,omitempty"`
	BodyBytes   int       `json:"body_bytes"`
	Created     time.Time `json:"created"`
	Expires     time.Time `json:"expires,omitzero"`
	DoubtSince  time.Time `json:"doubt_since,omitzero"`
	ResendUntil time.Time `json:"resend_until,omitzero"`
	LeaseUntil  time.Time `json:"lease_until,omitzero"`
	Reason      string    `json:"reason,omitempty"`

	MessageID      string `json:"message_id,omitempty"`
	SequenceNumber string `json:"sequence_number,omitempty"`
	ResponseBytes  int    `json:"response_bytes"`
}

func recordLine(r idempotency.Record) keyRecord {
	return keyRecord{
		ID: r.Key.ID().String(), Scope: r.Key.Scope, Operation: r.Key.Operation, Value: r.Key.Value, State: stateOf(r),
		Generation: r.Generation, Attempts: r.Attempts, Group: r.Group, BodyBytes: len(r.Body), Created: r.Created, Expires: r.Expires,
		DoubtSince: r.DoubtSince, ResendUntil: r.ResendUntil, LeaseUntil: r.LeaseUntil, Reason: r.Reason,
		MessageID: r.Result.MessageID, SequenceNumber: r.Result.SequenceNumber, ResponseBytes: len(r.Result.Response),
	}
}

// These are the states of a key without an outcome. The state of a key with an outcome is
// its idempotency.Status.
const (
	stateRunning    = "running"
	stateInDoubt    = "in_doubt"
	stateUnresolved = "unresolved"
)

// stateOf returns the state of the key with this record. For a key without an outcome,
// the function idempotency.Decide finds the state at the time of the read, r.ReadAt.
func stateOf(r idempotency.Record) string {
	if r.Status != idempotency.StatusRunning {
		return r.Status.String()
	}
	next := idempotency.Claim{Key: r.Key, Token: idempotency.NewToken(), Fingerprint: r.Fingerprint, ExactHash: r.ExactHash, Group: r.Group}
	switch idempotency.Decide(r, next, r.ReadAt) {
	case idempotency.DecisionInProgress:
		return stateRunning
	case idempotency.DecisionUnresolved:
		return stateUnresolved
	}
	return stateInDoubt
}

// doubtSince returns the start of the first attempt with an unknown outcome. Without such
// an attempt, it returns the creation time of the record.
func doubtSince(r idempotency.Record) time.Time {
	if r.DoubtSince.IsZero() {
		return r.Created
	}
	return r.DoubtSince
}

// keySelection has the flags that select keys. A key must match all flags that were given.
type keySelection struct {
	Scope     string        `placeholder:"SCOPE" help:"Keys of this scope."`
	Operation string        `placeholder:"NAME" help:"Keys of this operation, such as sqs.send."`
	Queue     string        `placeholder:"ARN" help:"Keys of producers, for events of the queue with this ARN."`
	OlderThan time.Duration `placeholder:"TIME" help:"Keys in doubt for longer than this, as in 1h30m; for a key without doubt, its age counts."`
}

func (s keySelection) check() error {
	if s.OlderThan < 0 {
		return fmt.Errorf("--older-than: %v is below 0", s.OlderThan)
	}
	return nil
}

func (s keySelection) isEmpty() bool { return s == keySelection{} }

// scan yields the selected records with one of the statuses. Without statuses, it yields
// records with any status.
func (s keySelection) scan(ctx context.Context, store idempotency.Store, statuses ...idempotency.Status) iter.Seq2[idempotency.Record, error] {
	return func(yield func(idempotency.Record, error) bool) {
		for r, err := range store.Scan(ctx, idempotency.Filter{Scope: s.Scope, Operation: s.Operation, Statuses: statuses}) {
			if err == nil && !s.match(r) {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// match reports whether a record matches the flags --older-than and --queue. The store has
// already compared scope and operation.
func (s keySelection) match(r idempotency.Record) bool {
	if s.OlderThan > 0 && r.ReadAt.Sub(doubtSince(r)) <= s.OlderThan {
		return false
	}
	if s.Queue == "" {
		return true
	}
	// A producer's scope is "client:ARN:source". JoinScope escapes the colons in the ARN.
	parts := strings.Split(r.Key.Scope, ":")
	return len(parts) == 3 && parts[1] == idempotency.JoinScope(s.Queue)
}

// withStore opens the idempotency store in a database, passes the store to the function
// `do`, and closes store and database.
func withStore(ctx context.Context, source string, do func(*sqlstore.Store) error) (err error) {
	store, db, err := openStore(ctx, source)
	if err != nil {
		return err
	}
	defer closing(closeAll(store, db), &err)
	return do(store)
}

type keysListCmd struct {
	Select     keySelection `embed:"" group:"Selection:"`
	Unresolved bool         `help:"Keys whose outcome nobody knows, and whose operation must not run again."`
	JSON       bool         `name:"json" help:"Print one JSON object for each key."`
	Database   string       `arg:"" help:"File of a SQLite database, or a postgres:// URL."`
}

func (*keysListCmd) Help() string {
	return `Lists keys, one on a line: ID, state, operation, scope, key, and the start of the doubt. "sqsfifo keys --help" explains the states.

With --unresolved it lists the keys that wait for an operator: an attempt may have taken effect, nobody works on it, and another attempt might take effect a second time. "sqsfifo keys resolve" records the outcome.

The exit code is 0 if no listed key is unresolved, 1 if one is, 2 if the store cannot be read.

Examples:

	sqsfifo keys list payments.db --unresolved
	sqsfifo keys list scenes.db --unresolved --queue arn:aws:sqs:eu-central-1:123456789012:scenes.fifo --older-than 1h
	sqsfifo keys list postgres://app@db.example.org/payments --operation payments.create --json`
}

func (c *keysListCmd) run(ctx context.Context, std stdio) error {
	if err := c.Select.check(); err != nil {
		return err
	}
	var statuses []idempotency.Status
	if c.Unresolved {
		statuses = append(statuses, idempotency.StatusRunning)
	}
	return withStore(ctx, c.Database, func(store *sqlstore.Store) error {
		out, unresolved, listed := newLineWriter(std.out), 0, 0
		for r, err := range c.Select.scan(ctx, store, statuses...) {
			if err != nil {
				return errors.Join(err, out.flush())
			}
			l := recordLine(r)
			if l.State == stateUnresolved {
				unresolved++
			} else if c.Unresolved {
				continue
			}
			listed++
			since := "created " + stamp(l.Created)
			if !l.DoubtSince.IsZero() {
				since = "in doubt since " + stamp(l.DoubtSince)
			}
			out.print(c.JSON, l, "%s %s %s scope %q, key %q, %s\n", l.ID[:shortID], l.State, l.Operation, l.Scope, l.Value, since)
			if out.err != nil {
				return out.err
			}
		}
		if err := out.flush(); err != nil {
			return err
		}
		fmt.Fprintf(std.err, "%s listed, %d unresolved\n", counted(listed, "key"), unresolved)
		return findingsIf(unresolved > 0)
	})
}

// shortID is the number of digits of an ID in text output. The first digits are enough to
// select a key on the command line.
const shortID = 16

// findKeys returns the records whose IDs begin with the prefixes, in prefix order. A
// prefix of no ID, or of more than one ID, is an error.
func findKeys(ctx context.Context, store idempotency.Store, prefixes ...string) ([]idempotency.Record, error) {
	found, counts := make([]idempotency.Record, len(prefixes)), make([]int, len(prefixes))
	for _, prefix := range prefixes {
		if len(prefix) < 8 {
			return nil, fmt.Errorf("ID %q is short; give 8 digits or more, as \"keys list\" prints them", prefix)
		}
	}
	for r, err := range store.Scan(ctx, idempotency.Filter{}) {
		if err != nil {
			return nil, err
		}
		id := r.Key.ID().String()
		for i, prefix := range prefixes {
			if strings.HasPrefix(id, strings.ToLower(prefix)) {
				found[i] = r
				counts[i]++
			}
		}
	}
	for i, prefix := range prefixes {
		switch {
		case counts[i] == 0:
			return nil, fmt.Errorf("the store has no key whose ID begins with %q", prefix)
		case counts[i] > 1:
			return nil, fmt.Errorf("%d keys have IDs that begin with %q; give more digits", counts[i], prefix)
		}
	}
	return found, nil
}

type keysShowCmd struct {
	JSON     bool   `name:"json" help:"Print one JSON object."`
	Database string `arg:"" help:"File of a SQLite database, or a postgres:// URL."`
	ID       string `arg:"" help:"ID of the key, or its first digits."`
}

func (*keysShowCmd) Help() string {
	return `Shows what the store knows of a key, without the body and the response. The state is the state that the next claim would find; "sqsfifo keys --help" explains the states.

Examples:

	sqsfifo keys show payments.db 6f1d0c2b`
}

func (c *keysShowCmd) run(ctx context.Context, std stdio) error {
	return withStore(ctx, c.Database, func(store *sqlstore.Store) error {
		found, err := findKeys(ctx, store, c.ID)
		if err != nil {
			return err
		}
		return showRecord(std.out, recordLine(found[0]), c.JSON)
	})
}

func showRecord(w io.Writer, l keyRecord, asJSON bool) error {
	if asJSON {
		return printLine(w, true, l, "")
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, value any) { fmt.Fprintf(t, "%s\t%v\n", name, value) }
	at := func(name string, value time.Time) {
		if !value.IsZero() {
			row(name, stamp(value))
		}
	}
	row("id", l.ID)
	row("operation", l.Operation)
	row("scope", fmt.Sprintf("%q", l.Scope))
	row("key", fmt.Sprintf("%q", l.Value))
	row("state", l.State)
	row("attempts", fmt.Sprintf("%d in generation %d", l.Attempts, l.Generation))
	if l.Group != "" {
		row("group", l.Group)
	}
	row("body", fmt.Sprintf("%d bytes", l.BodyBytes))
	at("created", l.Created)
	at("expires", l.Expires)
	at("in doubt since", l.DoubtSince)
	at("resend until", l.ResendUntil)
	at("lease until", l.LeaseUntil)
	if l.Reason != "" {
		row("reason", l.Reason)
	}
	if l.MessageID != "" {
		row("message id", l.MessageID)
	}
	if l.State == "succeeded" {
		row("response", fmt.Sprintf("%d bytes", l.ResponseBytes))
	}
	return t.Flush()
}
