package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Two equal requests lead to one payment. A different request with the same key is a
// conflict.
func ExampleGuard() {
	policy, err := idempotency.NewPolicy(idempotency.PolicyConfig{TTL: idempotency.TTLPayment, Lease: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	guard, err := idempotency.NewGuard(idempotency.GuardConfig{Store: new(idempotency.Memory), Policy: policy})
	if err != nil {
		fmt.Println(err)
		return
	}
	pay := func(key, body string) {
		answer, err := guard.Do(context.Background(), idempotency.Request{
			Key:         idempotency.Key{Scope: "tenant-7", Operation: "payments.create", Value: key},
			Fingerprint: idempotency.FingerprintOf("payments/1", []byte(body)),
		}, func(context.Context, idempotency.Outcome) (idempotency.Result, error) {
			fmt.Println("paying", body)
			return idempotency.Result{Response: []byte("receipt 1")}, nil
		})
		var conflict *idempotency.ConflictError
		if errors.As(err, &conflict) {
			fmt.Println("another request has this key")
			return
		}
		fmt.Println(string(answer.Result.Response), answer.Duplicate, err)
	}
	pay("order-1", "10 EUR")
	pay("order-1", "10 EUR")
	pay("order-1", "99 EUR")
	// Output:
	// paying 10 EUR
	// receipt 1 false <nil>
	// receipt 1 true <nil>
	// another request has this key
}

// A producer or job runner can call a store directly, without a guard.
func ExampleStore() {
	ctx := context.Background()
	var now time.Time
	store := &idempotency.Memory{Now: func() time.Time { return now }}
	now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	claim := func() idempotency.Outcome {
		out, err := store.Claim(ctx, idempotency.Claim{
			Key: idempotency.Key{Scope: "jobs", Operation: "report", Value: "2026-01"}, Token: idempotency.NewToken(),
			Fingerprint: idempotency.FingerprintOf("report/1", []byte("2026-01")),
			Terms:       idempotency.Terms{Lease: time.Minute, TTL: time.Hour, ResendFor: 5 * time.Minute},
		})
		fmt.Println(out.Decision, err)
		return out
	}
	first := claim()
	claim() // another claimant
	now = now.Add(2 * time.Minute)
	second := claim() // the first claimant died; a second run is safe
	fmt.Println(errors.Is(store.Finish(ctx, first.Ref(), idempotency.Completed(idempotency.Result{})), idempotency.ErrStaleClaim))
	fmt.Println(store.Finish(ctx, second.Ref(), idempotency.Completed(idempotency.Result{})))
	claim()
	now = now.Add(time.Hour)
	claim() // the record has expired
	// Output:
	// new <nil>
	// in progress <nil>
	// reclaimed <nil>
	// true
	// <nil>
	// duplicate <nil>
	// new <nil>
}
