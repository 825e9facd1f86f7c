package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

type keysResolveCmd struct {
	As             string `enum:"took_effect,no_effect," default:"" placeholder:"RESOLUTION" help:"took_effect: it took effect. no_effect: no attempt did, and it may run again. With --receipts: took_effect."`
	Receipts       string `placeholder:"FILE" help:"Resolve the keys whose message has a receipt of \"sqsfifo send\" in this file, as took_effect. Needs --queue. - is standard input."`
	Response       string `placeholder:"FILE" help:"With took_effect, for one key: the response that duplicates get, byte for byte."`
	MessageID      string `placeholder:"ID" help:"With took_effect, for one key: SQS's ID of the message."`
	SequenceNumber string `placeholder:"N" help:"With took_effect, for one key: SQS's sequence number of the message."`
	Reason         string `placeholder:"TEXT" help:"With no_effect: how that was found out. It is kept; no payload, no secrets."`
	Yes            bool   `help:"Do it. Without it the keys are listed and nothing is changed."`
	JSON           bool   `name:"json" help:"Print one JSON object for each key: id, operation, scope, value, state, result, and resolution or why."`

	Select keySelection `embed:"" group:"Selection, in place of IDs:"`

	Database string   `arg:"" help:"File of a SQLite database, or a postgres:// URL."`
	ID       []string `arg:"" optional:"" help:"IDs of keys, or their first digits."`
}

func (*keysResolveCmd) Help() string {
	return `Records the outcome of unresolved keys, after somebody has found out whether the operation took effect, and that no attempt is still under way: a request that arrives later takes effect later.

The keys are named by ID, or selected: all unresolved keys of a scope, an operation, a queue or an age. Limits that are given together must all hold. --receipts FILE takes receipts of "sqsfifo send": a receipt whose outcome is stored, duplicate or already_sent proves that the queue has the message, and resolves the key with the same message. Other receipts prove nothing and are passed over. A proof about another queue ends the command: for example that of a rehearsal with a local queue.

Each key has one line: resolved, would resolve, already (it has this outcome), or skipped with the reason: it is not unresolved, or somebody claimed it since the command read it. Nothing is changed without --yes. After an interruption run the command again: keys that are resolved stay so.

The exit code is 0 if each key is resolved, 1 if a key was skipped or has no receipt, 2 if nothing was changed or the store failed.

Examples:

	sqsfifo keys resolve scenes.db 6f1d0c2b --as took_effect --message-id 5fea7756-0ea4-451a-a703-a558b933e274 --yes
	sqsfifo keys resolve payments.db --as no_effect --operation payments.create --older-than 24h --reason 'not in the ledger of the bank'
	sqsfifo keys resolve scenes.db --receipts receipts.jsonl --queue arn:aws:sqs:eu-central-1:123456789012:scenes.fifo --yes`
}

func (c *keysResolveCmd) check() error {
	var errs flagErrors
	tookEffect := c.As == string(idempotency.ResolutionTookEffect)
	one := c.Response != "" || c.MessageID != "" || c.SequenceNumber != ""
	errs.addIf(c.As == "" && c.Receipts == "", "--as: say took_effect or no_effect")
	errs.addIf(c.As != "" && !tookEffect && c.Receipts != "", "--receipts prove that messages are stored; --as no_effect is for other keys")
	errs.addIf(one && !tookEffect, "--response, --message-id and --sequence-number are of what took effect; --as no_effect takes --reason")
	errs.addIf(one && tookEffect && len(c.ID) != 1, "--response, --message-id and --sequence-number are of one key; name its ID")
	errs.addIf(c.Reason != "" && (tookEffect || c.Receipts != ""), "--reason is of what had no effect")
	errs.addIf(len(c.ID) > 0 && (c.Receipts != "" || !c.Select.isEmpty()), "IDs name the keys; leave --receipts and the selection out")
	errs.addIf(len(c.ID) == 0 && c.Select.isEmpty() && c.Receipts == "", "name keys by ID, or limit the selection with --scope, --operation, --queue or --older-than")
	errs.addIf(c.Receipts != "" && c.Select.Queue == "", "--receipts needs --queue, the ARN of the queue that the receipts are of")
	errs = append(errs, c.Select.check())
	return errors.Join(errs...)
}

// keyTarget is a key to resolve. The fields `fence` and `attempts` are two counters of
// the key's record, as first read. If one of them has changed since, another process has
// tried the key again, and the command does not resolve the key.
type keyTarget struct {
	key             idempotency.Key
	fence, attempts int64
	ending          idempotency.Ending
}

// resolvedKey is one line of --json output. Member names are stable.
type resolvedKey struct {
	ID         string `json:"id"`
	Operation  string `json:"operation"`
	Scope      string `json:"scope"`
	Value      string `json:"value"`
	State      string `json:"state"`
	Result     string `json:"result"` // a constant from keyResolved to keySkipped
	Resolution string `json:"resolution,omitempty"`
	Why        string `json:"why,omitempty"`

	err error // error of the store; it ends the command
}

// These are the values of resolvedKey.Result.
const (
	keyResolved     = "resolved"
	keyWouldResolve = "would_resolve" // without --yes
	keyAlready      = "already"       // the key has this outcome already
	keySkipped      = "skipped"
)

func (c *keysResolveCmd) run(ctx context.Context, std stdio) error {
	if err := c.check(); err != nil {
		return err
	}
	var receipts sentReceipts
	if c.Receipts != "" {
		var err error
		if receipts, err = readReceipts(c.Receipts, std.in, c.Select.Queue); err != nil {
			return fmt.Errorf("--receipts: %w", err)
		}
		c.As = string(idempotency.ResolutionTookEffect)
	}
	ending, err := c.ending()
	if err != nil {
		return err
	}
	return withStore(ctx, c.Database, func(store *sqlstore.Store) error {
		targets, missing, err := c.targets(ctx, store, receipts, ending)
		if err != nil {
			return err
		}
		counts, err := c.resolveAll(ctx, std, store, targets)
		if err != nil {
			return err
		}
		summary := fmt.Sprintf("%s: %d resolved, %d already, %d skipped", counted(len(targets), "key"), counts[keyResolved], counts[keyAlready], counts[keySkipped])
		if missing > 0 {
			summary += fmt.Sprintf("; %s without a receipt", counted(missing, "unresolved key"))
		}
		if would := counts[keyWouldResolve]; would > 0 {
			return fmt.Errorf("nothing was changed; --yes resolves %s", counted(would, "key"))
		}
		fmt.Fprintln(std.err, summary)
		return findingsIf(counts[keySkipped] > 0 || missing > 0)
	})
}

// ending converts the flags to the outcome to record. For example, --message-id gives a
// completed send with this message ID.
func (c *keysResolveCmd) ending() (idempotency.Ending, error) {
	if c.As == string(idempotency.ResolutionNoEffect) {
		return idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForAll, Reason: c.Reason}), nil
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

// targets returns the keys to resolve, each with its outcome. Without IDs on the command
// line, flags select among the unresolved keys. With --receipts (`receipts` is not nil),
// each selected key gets the outcome of its receipt. Keys without a receipt are left out,
// and the result `missing` is their number.
func (c *keysResolveCmd) targets(ctx context.Context, store idempotency.Store, receipts sentReceipts, ending idempotency.Ending) (targets []keyTarget, missing int, err error) {
	add := func(r idempotency.Record, e idempotency.Ending) {
		targets = append(targets, keyTarget{r.Key, r.Fence, r.Attempts, e})
	}
	if len(c.ID) > 0 {
		found, err := findKeys(ctx, store, c.ID...)
		for _, r := range found {
			add(r, ending)
		}
		return targets, 0, err
	}
	for r, err := range c.Select.scan(ctx, store, idempotency.StatusRunning) {
		switch receipt, ok := receipts.lookUp(r); {
		case err != nil:
			return nil, 0, err
		case stateOf(r) != stateUnresolved:
		case receipts == nil:
			add(r, ending)
		case ok:
			add(r, idempotency.Completed(receipt))
		default:
			missing++
		}
	}
	return targets, missing, nil
}

// resolveAll resolves the keys in batches. It resolves the keys of a batch concurrently,
// because a store can commit several changes at once. It prints one line for each key.
func (c *keysResolveCmd) resolveAll(ctx context.Context, std stdio, store idempotency.Store, targets []keyTarget) (counts map[string]int, err error) {
	out := newLineWriter(std.out)
	counts = map[string]int{}
	for len(targets) > 0 && err == nil {
		part := targets[:min(len(targets), idempotency.MaxBatch)]
		targets = targets[len(part):]
		keys := make([]idempotency.Key, len(part))
		for i, t := range part {
			keys[i] = t.key
		}
		var found []idempotency.Record
		if found, err = store.Lookup(ctx, keys...); err != nil {
			break
		}
		lines := make([]resolvedKey, len(part))
		var running sync.WaitGroup
		for i, t := range part {
			running.Go(func() { lines[i] = c.resolve(ctx, store, t, found[i]) })
		}
		running.Wait()
		for _, l := range lines {
			if err = errors.Join(err, l.err); l.err == nil {
				counts[l.Result]++
				c.print(out, l)
			}
		}
		err = errors.Join(err, out.flush())
	}
	if err != nil && counts[keyResolved] > 0 {
		err = fmt.Errorf("%w; %s resolved, run the command again for the other keys", err, counted(counts[keyResolved], "key"))
	}
	return counts, err
}

// resolve resolves one key, unless a new attempt has begun or the key is no longer
// unresolved. Without --yes, it changes nothing. The parameter `found` is the key's record,
// just read again.
func (c *keysResolveCmd) resolve(ctx context.Context, store idempotency.Store, t keyTarget, found idempotency.Record) resolvedKey {
	l := resolvedKey{ID: t.key.ID().String(), Operation: t.key.Operation, Scope: t.key.Scope, Value: t.key.Value, State: stateOf(found)}
	want := idempotency.StatusSucceeded
	if _, completed := t.ending.Result(); !completed {
		want = idempotency.StatusFailed
	}
	switch {
	case found.Status == want:
		l.Result, l.Resolution = keyAlready, c.As
		return l
	case l.State != stateUnresolved:
		l.Result, l.Why = keySkipped, "it is "+l.State+" and not unresolved"
		return l
	case found.Fence != t.fence || found.Attempts != t.attempts:
		l.Result, l.Why = keySkipped, "it was tried again since it was read"
		return l
	case !c.Yes:
		l.Result, l.Resolution = keyWouldResolve, c.As
		return l
	}
	var inProgress *idempotency.InProgressError
	switch err := idempotency.Resolve(ctx, store, found, t.ending); {
	case err == nil:
		l.Result, l.Resolution, l.State = keyResolved, c.As, want.String()
	case errors.Is(err, idempotency.ErrStaleClaim) || errors.As(err, &inProgress):
		l.Result, l.Why = keySkipped, err.Error()
	default:
		l.err = fmt.Errorf("key %.*s: %w", shortID, l.ID, err)
	}
	return l
}

func (c *keysResolveCmd) print(out *lineWriter, l resolvedKey) {
	text := map[string]string{
		keyResolved: "resolved as " + l.Resolution, keyWouldResolve: "would resolve as " + l.Resolution,
		keyAlready: "already " + l.State, keySkipped: "skipped: " + l.Why,
	}[l.Result]
	out.print(c.JSON, l, "%s %s scope %q, key %q: %s\n", l.ID[:shortID], l.Operation, l.Scope, l.Value, text)
}
