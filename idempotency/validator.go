package idempotency

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

const datasetSpec = "dataset-key/1" // the Fingerprint.Spec of all keys of a Validator

// ValidatorConfig configures a [Validator].
type ValidatorConfig struct {
	Store  Store
	Policy Policy

	// Scope is the scope of the keys. Validators with the same store and scope share
	// their runs.
	Scope string

	// Formula computes the idempotency key of a dataset. Formula must be pure. With
	// package sqsfifo:
	//
	//	func(d idempotency.Dataset) (string, error) {
	//		return sqsfifo.Dataset{ID: d.ID, Version: d.Version, SourceURI: d.SourceURI}.IdempotencyKey()
	//	}
	Formula func(Dataset) (string, error)
}

// Validator decides whether a pipeline run proceeds or is a no-op. It is safe for
// concurrent use.
//
// The validator recomputes the dataset's key, compares it with the event's key, and looks
// the key up. The key specification v10.3.1 of the Kansas Frontier Matrix (KFM) requires
// this.
type Validator struct {
	config ValidatorConfig
	guard  *Guard

	proceeded, duplicates, violations atomic.Int64
}

// ValidatorStats counts the answers of [Validator.Check] and [Validator.Run]. Violations
// counts supplied keys that differ from the keys of their datasets; violations are not
// counted as duplicates.
type ValidatorStats struct{ Proceeded, Duplicates, Violations int64 }

// Stats returns the counts since the creation of the validator.
func (v *Validator) Stats() ValidatorStats {
	return ValidatorStats{Proceeded: v.proceeded.Load(), Duplicates: v.duplicates.Load(), Violations: v.violations.Load()}
}

// NewValidator returns a validator, or an [*InvalidError] naming the missing or invalid
// field. The policy's TTL must be [Forever], because the keys of pipeline runs must never
// be deleted.
func NewValidator(c ValidatorConfig) (*Validator, error) {
	guard, err := NewGuard(GuardConfig{Store: c.Store, Policy: c.Policy})
	if err != nil {
		return nil, err
	}
	if ttl := c.Policy.config.TTL; ttl != Forever {
		return nil, &InvalidError{Field: "ValidatorConfig.Policy", Rule: fmt.Sprintf("a TTL of %v, want Forever; keys of dataset runs are append-only", ttl)}
	}
	if c.Formula == nil {
		return nil, &InvalidError{Field: "ValidatorConfig.Formula", Rule: "nil; use the formula of the key specification"}
	}
	if err := (Key{Scope: c.Scope, Operation: datasetOperation, Value: "-"}).Check(); err != nil {
		return nil, err
	}
	return &Validator{config: c, guard: guard}, nil
}

const datasetOperation = "dataset.run"

// KeyViolationError: an event's key differs from the key computed from its dataset. The
// key was not looked up in the store, so this is not a duplicate. The pipeline run must
// not start.
type KeyViolationError struct {
	Supplied   string // as received
	Recomputed string
}

func (e *KeyViolationError) Error() string {
	if rule := keyRule(e.Supplied); rule != "" {
		return fmt.Sprintf("idempotency: key violation: the supplied key %s; want %s", rule, e.Recomputed)
	}
	return fmt.Sprintf("idempotency: key violation: got %s, recomputed %s; the event names another dataset than its key, or its key was computed from other text", e.Supplied, e.Recomputed)
}

// keyRule returns the first defect in the form of a key, or "".
func keyRule(key string) string {
	digits, ok := strings.CutPrefix(key, "sha256:")
	switch {
	case !ok:
		return `does not start with "sha256:"`
	case len(digits) != 64:
		return fmt.Sprintf("has %d digits, and a SHA-256 has 64", len(digits))
	case strings.Trim(digits, "0123456789abcdef") != "":
		return "is not lower-case hexadecimal"
	default:
		return ""
	}
}

// Judgement is a [Validator]'s answer. The fields Proceed and DuplicateDetected report
// whether a dataset's pipeline run may start. All other fields are for telemetry.
type Judgement struct {
	// Proceed reports that the run may start. If DuplicateDetected is true, a run for
	// this dataset has already succeeded. If both fields are false, the run must wait:
	// see the errors of [Validator.Check].
	Proceed bool

	IdempotencyKey    string
	DuplicateDetected bool
	Dataset           Dataset

	// Drift: the dataset's ArtifactChecksum differs from the checksum of the recorded
	// run.
	Drift bool

	// FirstSeen is Record.Created: the time of the key's first claim, or of the first
	// claim after the last failed run. It is zero for a key never claimed.
	FirstSeen time.Time
}

// Check verifies the supplied key and reports whether a run could start now. Check does
// not claim the key, so another caller may start the run first. To run, use
// [Validator.Run].
//
// The error is a [*KeyViolationError], an [*InvalidError], an error of
// ValidatorConfig.Formula or a [*StoreError].
//
// For a claimed key without a recorded outcome:
//
//   - During the lease, the error is an [*InProgressError].
//   - After the lease, Proceed is true if the policy permits a second run: before
//     Record.ResendUntil, or at any time with PolicyConfig.Resend.
//   - Otherwise the error is an [*UnresolvedError].
func (v *Validator) Check(ctx context.Context, supplied string, d Dataset) (Judgement, error) {
	r, err := v.request(supplied, d)
	if err != nil {
		return Judgement{}, err
	}
	records, err := v.config.Store.Lookup(ctx, r.Key)
	if err != nil {
		return Judgement{}, &StoreError{RedactedKey: redacted(r.Key), Err: err}
	}
	found := records[0]
	c := Claim{Key: r.Key, Fingerprint: r.Fingerprint, ExactHash: r.ExactHash, Resend: v.config.Policy.config.Resend}
	out := NewOutcome(Decide(found, c, found.ReadAt), found, c)
	return v.judgement(r, out), out.Err(r.Key)
}

// Run executes f, unless a run with this dataset's key has already succeeded. In that
// case the result is the stored one. Otherwise Run behaves like [Guard.Do].
func (v *Validator) Run(ctx context.Context, supplied string, d Dataset, f func(ctx context.Context, claimed Outcome) (Result, error)) (Judgement, Answer, error) {
	r, err := v.request(supplied, d)
	if err != nil {
		return Judgement{}, Answer{}, err
	}
	judgement := Judgement{IdempotencyKey: r.Key.Value, Dataset: d}
	answer, err := v.guard.Do(ctx, r, func(ctx context.Context, claimed Outcome) (Result, error) {
		judgement = v.judgement(r, claimed)
		return f(ctx, claimed)
	})
	if answer.Duplicate {
		judgement = v.judgement(r, Outcome{Decision: DecisionDuplicate, Drift: answer.Drift, Record: answer.Record})
	}
	return judgement, answer, err
}

// request recomputes the key from the dataset, and returns the request for the guard. If
// the supplied key is different, request returns a [*KeyViolationError].
func (v *Validator) request(supplied string, d Dataset) (Request, error) {
	if err := d.Check(); err != nil {
		return Request{}, err
	}
	key, err := v.config.Formula(d)
	if err != nil {
		return Request{}, err
	}
	if supplied != key {
		v.violations.Add(1)
		return Request{}, &KeyViolationError{Supplied: supplied, Recomputed: key}
	}
	r := Request{
		Key:         Key{Scope: v.config.Scope, Operation: datasetOperation, Value: key},
		Fingerprint: FingerprintOf(datasetSpec, []byte(key)), // the key alone identifies the run
		Dataset:     d,
	}
	if d.ArtifactChecksum != "" {
		r.ExactHash = ExactHashOf([]byte(d.ArtifactChecksum), "")
	}
	return r, r.Key.Check()
}

func (v *Validator) judgement(r Request, out Outcome) Judgement {
	judgement := Judgement{
		Proceed: out.Decision.Granted(), IdempotencyKey: r.Key.Value, DuplicateDetected: out.Decision == DecisionDuplicate,
		Dataset: r.Dataset, Drift: out.Drift,
	}
	if judgement.Proceed {
		v.proceeded.Add(1)
	} else if judgement.DuplicateDetected {
		v.duplicates.Add(1)
	}
	if out.Record.Status != StatusAbsent {
		judgement.FirstSeen = out.Record.Created
	}
	return judgement
}
