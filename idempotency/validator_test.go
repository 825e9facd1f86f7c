package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// formula computes the key of a dataset.
func formula(d idempotency.Dataset) (string, error) {
	return sqsfifo.Dataset{ID: d.ID, Version: d.Version, SourceURI: d.SourceURI}.IdempotencyKey()
}

var storms = idempotency.Dataset{
	ID: "noaa_storm_events_1950_2025", Version: "v10.3.1",
	SourceURI:        "https://www.ncei.noaa.gov/storm-events/file_1950_2025.csv",
	ArtifactChecksum: "sha256:88bedf22ee", CARELabel: "public", ReplaySafe: true,
}

// stormsKey is the SHA-256 in the example of the key specification.
const stormsKey = "sha256:7fd365dc3a22bccf2f7e584b28fa6bbb1730d8db5c5b7eb6d3a0e6d73743b6ea"

func newValidator(t testing.TB) *idempotency.Validator {
	t.Helper()
	policy, err := idempotency.NewPolicy(idempotency.PolicyConfig{TTL: idempotency.Forever, Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	v, err := idempotency.NewValidator(idempotency.ValidatorConfig{Store: new(idempotency.Memory), Policy: policy, Scope: "kfm", Formula: formula})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func ExampleValidator() {
	policy, err := idempotency.NewPolicy(idempotency.PolicyConfig{TTL: idempotency.Forever, Lease: time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := idempotency.NewValidator(idempotency.ValidatorConfig{Store: new(idempotency.Memory), Policy: policy, Scope: "kfm", Formula: formula})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		judgement, _, err := v.Run(context.Background(), stormsKey, storms, func(context.Context, idempotency.Outcome) (idempotency.Result, error) {
			fmt.Println("the pipeline runs")
			return idempotency.Result{}, nil
		})
		fmt.Println("proceed:", judgement.Proceed, "duplicate_detected:", judgement.DuplicateDetected, err)
	}
	// Output:
	// the pipeline runs
	// proceed: true duplicate_detected: false <nil>
	// proceed: false duplicate_detected: true <nil>
	// proceed: false duplicate_detected: true <nil>
}

// A supplied key must equal the key computed from the dataset. Any other key is a
// violation, never a duplicate.
func TestValidatorViolations(t *testing.T) {
	v := newValidator(t)
	run := func(key string, d idempotency.Dataset) error {
		_, _, err := v.Run(t.Context(), key, d, returns("done"))
		return err
	}
	if err := run(stormsKey, storms); err != nil {
		t.Fatal(err)
	}
	other := storms
	other.Version = "v10.3.2"
	for name, tc := range map[string]struct {
		key  string
		d    idempotency.Dataset
		says string
	}{
		"the example key of the specification, which has 63 digits": {"sha256:31b1ee2f4dd9030c95f84a78047bcdfd7b8a38ef9c7f0c31bde1dca55ed9012", storms, "63 digits"},
		"the key of another version":                                {stormsKey, other, "another dataset"},
		"upper case":                                                {"sha256:" + strings.ToUpper(stormsKey[7:]), storms, "lower-case"},
		"no prefix":                                                 {stormsKey[7:], storms, `"sha256:"`},
		"no key":                                                    {"", storms, `"sha256:"`},
	} {
		_, err := v.Check(t.Context(), tc.key, tc.d)
		var violation *idempotency.KeyViolationError
		if !errors.As(err, &violation) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: checked: got %v, want a KeyViolationError that says %q", name, err, tc.says)
		}
		if _, _, err := v.Run(t.Context(), tc.key, tc.d, never(t)); !errors.As(err, &violation) {
			t.Errorf("%s: run: got %v, want a KeyViolationError", name, err)
		}
	}
	noSource := storms
	noSource.SourceURI = ""
	if _, _, err := v.Run(t.Context(), stormsKey, noSource, never(t)); err == nil {
		t.Error("a dataset without source_uri ran")
	}
	// Check returns the dataset with every field. If the store has another
	// ArtifactChecksum for the same dataset, Check reports drift.
	judgement, err := v.Check(t.Context(), stormsKey, storms)
	if err != nil || judgement.Proceed || !judgement.DuplicateDetected || judgement.Dataset != storms || judgement.FirstSeen.IsZero() || judgement.Drift {
		t.Errorf("got %+v, %v, want a duplicate", judgement, err)
	}
	changed := storms
	changed.ArtifactChecksum = "sha256:00"
	if judgement, err = v.Check(t.Context(), stormsKey, changed); err != nil || !judgement.DuplicateDetected || !judgement.Drift {
		t.Errorf("another checksum: got %+v, %v, want a duplicate with drift", judgement, err)
	}
	unseen := storms
	unseen.ID = "other"
	key, err := formula(unseen)
	if err != nil {
		t.Fatal(err)
	}
	before := v.Stats()
	if judgement, err = v.Check(t.Context(), key, unseen); err != nil || !judgement.Proceed || !judgement.FirstSeen.IsZero() {
		t.Errorf("an unseen key: got %+v, %v, want proceed", judgement, err)
	}
	// Violations are counted as violations, not as duplicates.
	if _, err := v.Check(t.Context(), "sha256:00", unseen); err == nil {
		t.Error("a wrong key was accepted")
	}
	if _, err := v.Check(t.Context(), stormsKey, storms); err != nil {
		t.Error(err)
	}
	before.Proceeded, before.Violations, before.Duplicates = before.Proceeded+1, before.Violations+1, before.Duplicates+1
	if got := v.Stats(); got != before {
		t.Errorf("counted %+v, want %+v", got, before)
	}
}

// NewValidator refuses a policy with a finite TTL, because keys of pipeline runs must be
// kept forever.
func TestValidatorNeedsForever(t *testing.T) {
	policy := newPolicy(t, nil)
	_, err := idempotency.NewValidator(idempotency.ValidatorConfig{Store: new(idempotency.Memory), Policy: policy, Scope: "kfm", Formula: formula})
	if err == nil || !strings.Contains(err.Error(), "append-only") {
		t.Errorf("got %v, want an error about the TTL", err)
	}
}

// After a run with an unknown outcome, a second run is permitted only with
// PolicyConfig.Resend. Check and Run agree on this.
func TestCheckAgreesWithRun(t *testing.T) {
	for _, resend := range []bool{false, true} {
		now := time.Now()
		store := &idempotency.Memory{Now: func() time.Time { return now }}
		policy, err := idempotency.NewPolicy(idempotency.PolicyConfig{TTL: idempotency.Forever, Lease: time.Hour, Resend: resend})
		if err != nil {
			t.Fatal(err)
		}
		v, err := idempotency.NewValidator(idempotency.ValidatorConfig{Store: store, Policy: policy, Scope: "kfm", Formula: formula})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := v.Run(t.Context(), stormsKey, storms, func(context.Context, idempotency.Outcome) (idempotency.Result, error) {
			return idempotency.Result{}, errors.New("the connection was lost")
		}); err == nil {
			t.Fatal("want the error of the run")
		}
		now = now.Add(2 * time.Hour)
		judgement, checked := v.Check(t.Context(), stormsKey, storms)
		ran := false
		_, _, err = v.Run(t.Context(), stormsKey, storms, func(context.Context, idempotency.Outcome) (idempotency.Result, error) {
			ran = true
			return idempotency.Result{}, nil
		})
		if judgement.Proceed != resend || ran != resend || (checked == nil) != resend || (err == nil) != resend {
			t.Errorf("Resend %v: Check says proceed %v, %v; Run ran: %v, %v", resend, judgement.Proceed, checked, ran, err)
		}
	}
}
