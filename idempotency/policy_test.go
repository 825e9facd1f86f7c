package idempotency_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// This example computes the policy of a command API: 80 commands a second, a deadline
// of 10 s, 90 s of retries, 30 s of network delay and 5 s of clock difference.
func ExampleNewPolicy() {
	config := idempotency.PolicyConfig{
		TTL:    134 * time.Second,
		Caller: 10 * time.Second, Retry: 90 * time.Second, Network: 30 * time.Second, Clock: 5 * time.Second,
		Lease: 10 * time.Second,
		Rate:  80, Capacity: 12960,
	}
	_, err := idempotency.NewPolicy(config)
	fmt.Println(err)

	config.TTL = 135 * time.Second
	policy, err := idempotency.NewPolicy(config)
	fmt.Println(policy.Terms().TTL, err)
	fmt.Println(idempotency.RequiredCapacity(80, 135*time.Second), "records")
	fmt.Printf("%.2e\n", idempotency.CollisionProbability(12960, 128))
	// Output:
	// invalid PolicyConfig.TTL: 2m14s is less than Caller + Retry + Network + Clock = 2m15s; a late retry would run as a new operation
	// 2m15s <nil>
	// 12960 records
	// 2.47e-31
}

func TestPolicy(t *testing.T) {
	base := idempotency.PolicyConfig{
		TTL: 24 * time.Hour, Caller: time.Second, Retry: 200 * time.Second, Network: time.Second, Clock: 5 * time.Second,
		Lease: 20 * time.Second, Window: 300 * time.Second, Rate: 1, Capacity: 103680,
	}
	p, err := idempotency.NewPolicy(base)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.Terms(), (idempotency.Terms{Lease: 20 * time.Second, TTL: 24 * time.Hour, ResendFor: 275 * time.Second}); got != want {
		t.Errorf("terms %+v, want %+v", got, want)
	}
	if p.Config().StoreTimeout != 5*time.Second {
		t.Errorf("the store's timeout is %v", p.Config().StoreTimeout)
	}
	for _, tc := range []struct {
		name   string
		change func(*idempotency.PolicyConfig)
		field  string // "" for a valid policy
	}{
		{"the retries just fit", func(c *idempotency.PolicyConfig) { c.Retry = 275 * time.Second }, ""},
		{"the retries leave the window", func(c *idempotency.PolicyConfig) { c.Retry = 275*time.Second + 1 }, "Window"},
		{"no window", func(c *idempotency.PolicyConfig) { c.Window, c.Retry = 0, time.Hour }, ""},
		{"always safe", func(c *idempotency.PolicyConfig) { c.Window, c.Retry = idempotency.Forever, time.Hour }, ""},
		{"no TTL", func(c *idempotency.PolicyConfig) { c.TTL = 0 }, "TTL"},
		{"for ever, with a capacity", func(c *idempotency.PolicyConfig) { c.TTL = idempotency.Forever }, "Capacity"},
		{"for ever", func(c *idempotency.PolicyConfig) { c.TTL, c.Capacity = idempotency.Forever, 0 }, ""},
		{"one record short", func(c *idempotency.PolicyConfig) { c.Capacity-- }, "Capacity"},
		{"a capacity without a rate", func(c *idempotency.PolicyConfig) { c.Capacity, c.Rate = 1, 0 }, ""},
		{"a rate that is no number", func(c *idempotency.PolicyConfig) { c.Rate = math.NaN() }, "Rate"},
		{"no lease", func(c *idempotency.PolicyConfig) { c.Lease = 0 }, "Lease"},
		{"a lease beyond the TTL", func(c *idempotency.PolicyConfig) { c.Lease, c.Window = 25*time.Hour, 0 }, "Lease"},
		{"a negative time", func(c *idempotency.PolicyConfig) { c.Network = -1 }, "Network"},
		{"times that overflow", func(c *idempotency.PolicyConfig) { c.Window, c.Caller, c.Network = 0, math.MaxInt64, math.MaxInt64 }, "TTL"},
	} {
		c := base
		tc.change(&c)
		_, err := idempotency.NewPolicy(c)
		var policy *idempotency.InvalidError
		switch {
		case tc.field == "" && err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case tc.field != "" && (!errors.As(err, &policy) || policy.Field != "PolicyConfig."+tc.field):
			t.Errorf("%s: got %v, want a InvalidError about %s", tc.name, err, tc.field)
		}
	}
}

func TestCollisionProbability(t *testing.T) {
	for _, tc := range []struct {
		n    int64
		bits int
		want float64
	}{{0, 8, 0}, {1, 8, 0}, {2, 1, 0.5}, {2, 8, 1.0 / 256}, {3, 8, 3.0 / 256}, {1 << 40, 8, 1}} {
		if got := idempotency.CollisionProbability(tc.n, tc.bits); got != tc.want {
			t.Errorf("%d keys of %d bits: got %v, want %v", tc.n, tc.bits, got, tc.want)
		}
	}
}
