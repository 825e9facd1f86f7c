package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

type keysCmd struct {
	List   keysListCmd   `cmd:"" help:"List the keys whose outcome nobody knows."`
	Show   keysShowCmd   `cmd:"" help:"Show what the store knows of a key."`
	Settle keysSettleCmd `cmd:"" help:"Record what became of a key that is held."`
}

// Help returns the manual of the commands.
func (*keysCmd) Help() string {
	return `Works on an idempotency store (package idempotency) in a database, such as the journal of "sqsfifo send". DATABASE is the file of a SQLite database or a URL such as postgres://USER@HOST/DATABASE?search_path=SCHEMA; a password is better kept in PGPASSWORD or ~/.pgpass than in the URL. The database must have its store already: nothing is created.

Examples:

	sqsfifo keys list payments.db
	sqsfifo keys show payments.db 6f1d0c2b
	sqsfifo keys settle payments.db 6f1d0c2b --as failed --reason 'not in the ledger of the bank' --yes`
}

// keyRecord is the stable form of a record.
type keyRecord struct {
	ID        string `json:"id"`
	Scope     string `json:"scope"`
	Operation string `json:"operation"`
	Value     string `json:"value"`
	State     string `json:"state"` // succeeded, failed, running, repeatable or held

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

// stateOf returns the state of the key for the next claim.
func stateOf(r idempotency.Record) string {
	d := idempotency.Decide(r, idempotency.Claim{Key: r.Key, Token: idempotency.NewToken(), Fingerprint: r.Fingerprint, Seal: r.Seal, Group: r.Group}, r.ReadAt)
	switch {
	case r.Status != idempotency.Running:
		return r.Status.String()
	case d == idempotency.InProgress:
		return "running"
	case d == idempotency.Indeterminate:
		return "held"
	}
	return "repeatable"
}

// withStore calls do with the store of a database.
func withStore(ctx context.Context, source string, do func(*sqlstore.Store) (int, error)) (code int, err error) {
	store, db, err := openStore(ctx, source)
	if err != nil {
		return exitFailed, err
	}
	defer closing(closeAll(store, db), &code, &err)
	return do(store)
}

type keysListCmd struct {
	All       bool   `help:"List every key that has no outcome, also those that somebody works on or that may run again."`
	Operation string `placeholder:"NAME" help:"Keys of this operation."`
	JSON      bool   `name:"json" help:"Print one JSON object for each key."`
	Database  string `arg:"" help:"File of a SQLite database, or a postgres:// URL."`
}

// Help returns the manual of the command.
func (*keysListCmd) Help() string {
	return `Lists the keys that are held: an attempt may have taken effect, nobody works on it, and it is not known to be safe to run it again. Each is one line: its ID, operation, scope, value, and since when it is in doubt.

With --all also those that are running (somebody has the lease) and repeatable (the target still recognises a repetition, or no attempt is in doubt).

The exit code is 0 if no key is held, 1 if one is, 2 if the store cannot be read.

Examples:

	sqsfifo keys list payments.db
	sqsfifo keys list postgres://app@db.example.org/payments --operation payments.create --json`
}

func (c *keysListCmd) run(ctx context.Context, std stdio) (int, error) {
	return withStore(ctx, c.Database, func(store *sqlstore.Store) (int, error) {
		out, held, listed := newLineWriter(std.out), 0, 0
		for r, err := range store.Scan(ctx, idempotency.Filter{Operation: c.Operation, Statuses: []idempotency.Status{idempotency.Running}}) {
			if err != nil {
				return exitFailed, errors.Join(err, out.flush())
			}
			l := recordLine(r)
			if l.State == "held" {
				held++
			} else if !c.All {
				continue
			}
			listed++
			if err := c.print(out, l); err != nil {
				return exitFailed, err
			}
		}
		if err := out.flush(); err != nil {
			return exitFailed, err
		}
		fmt.Fprintf(std.err, "%s listed, %d held\n", counted(listed, "key"), held)
		if held > 0 {
			return exitFindings, nil
		}
		return exitFine, nil
	})
}

// shortID is the number of ID digits sufficient to name a key.
const shortID = 16

func (c *keysListCmd) print(out *lineWriter, l keyRecord) error {
	if c.JSON {
		return out.write(l)
	}
	since := "not in doubt"
	if !l.DoubtSince.IsZero() {
		since = "in doubt since " + stamp(l.DoubtSince)
	}
	return out.writeText(fmt.Sprintf("%s %s %s scope %q, key %q, %s\n", l.ID[:shortID], l.State, l.Operation, l.Scope, l.Value, since))
}

// findKey returns the record whose ID begins with the prefix.
func findKey(ctx context.Context, store idempotency.Store, prefix string) (idempotency.Record, error) {
	var found []idempotency.Record
	if len(prefix) < 8 {
		return idempotency.Record{}, fmt.Errorf("ID %q is short; give 8 digits or more, as \"keys list\" prints them", prefix)
	}
	for r, err := range store.Scan(ctx, idempotency.Filter{}) {
		if err != nil {
			return idempotency.Record{}, err
		}
		if strings.HasPrefix(r.Key.ID().String(), strings.ToLower(prefix)) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 0:
		return idempotency.Record{}, fmt.Errorf("the store has no key whose ID begins with %q", prefix)
	case 1:
		return found[0], nil
	}
	return idempotency.Record{}, fmt.Errorf("%d keys have IDs that begin with %q; give more digits", len(found), prefix)
}

type keysShowCmd struct {
	JSON     bool   `name:"json" help:"Print one JSON object."`
	Database string `arg:"" help:"File of a SQLite database, or a postgres:// URL."`
	ID       string `arg:"" help:"ID of the key, or its first digits."`
}

// Help returns the manual of the command.
func (*keysShowCmd) Help() string {
	return `Shows what the store knows of a key, without the body and the response. The state is what the next claim would find: succeeded, failed, running, repeatable or held.

Examples:

	sqsfifo keys show payments.db 6f1d0c2b`
}

func (c *keysShowCmd) run(ctx context.Context, std stdio) (int, error) {
	return withStore(ctx, c.Database, func(store *sqlstore.Store) (int, error) {
		r, err := findKey(ctx, store, c.ID)
		if err != nil {
			return exitFailed, err
		}
		err = showRecord(std.out, recordLine(r), c.JSON)
		return exitFailedIf(err), err
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
	at("repeatable until", l.ResendUntil)
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
