package idempotency

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// TTLs by kind of operation. Dataset runs are kept [Forever].
const (
	TTLRequest = 24 * time.Hour      // an HTTP request
	TTLWebhook = 7 * 24 * time.Hour  // a webhook delivery
	TTLPayment = 30 * 24 * time.Hour // a payment, which may settle weeks later
)

// PolicyConfig describes a kind of operation. [NewPolicy] checks it.
type PolicyConfig struct {
	// TTL is a record's lifetime from its creation: at least the sum of Caller, Retry,
	// Network and Clock. Records with a TTL of [Forever] are never deleted.
	TTL time.Duration

	// Caller, Retry, Network and Clock bound the time in which a retry of an operation
	// can still arrive:
	//
	//   - Caller is the caller's deadline.
	//   - Retry is the time from the first attempt to the latest start of the last
	//     attempt.
	//   - Network is the largest delay of a request.
	//   - Clock is the largest difference between the clocks of two machines involved,
	//     for example of the caller and of the store.
	Caller, Retry, Network, Clock time.Duration

	// Lease is the maximum duration of one run of the operation, including store calls.
	Lease time.Duration

	// Window is the time during which the operation's target recognises a repetition.
	// Within the window, an operation with an unknown outcome runs again. Use 5 minutes
	// for a send to SQS, 0 for a target without deduplication, and [Forever] for an
	// operation that may be repeated at any time.
	//
	// A window above 0 must be at least Retry + Lease + Clock. Otherwise the last retry
	// could reach the target after the target has forgotten the first attempt.
	Window time.Duration

	// Resend repeats an operation with an unknown outcome even outside its window. By
	// default the operation is [DecisionUnresolved] and does not run.
	Resend bool

	// Rate is the number of new operations a second. Capacity is the store's maximum
	// number of records. If both are set, NewPolicy checks Capacity against Rate and TTL.
	Rate     float64
	Capacity int64

	// StoreTimeout bounds one call of the store. The default is 5 s or half the lease,
	// the smaller of the two.
	StoreTimeout time.Duration
}

// Policy is a checked [PolicyConfig]. The zero Policy is not usable.
type Policy struct{ config PolicyConfig }

// NewPolicy checks the configuration. The error joins one [*InvalidError] for each
// violated rule.
func NewPolicy(c PolicyConfig) (Policy, error) {
	var errs []error
	broken := func(field, format string, args ...any) {
		errs = append(errs, &InvalidError{Field: "PolicyConfig." + field, Rule: fmt.Sprintf(format, args...)})
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"Caller", c.Caller}, {"Retry", c.Retry}, {"Network", c.Network}, {"Clock", c.Clock}, {"Window", c.Window}, {"StoreTimeout", c.StoreTimeout}} {
		if d.value < 0 {
			broken(d.name, "%v, want 0 or more", d.value)
		}
	}
	if c.Lease < time.Millisecond {
		broken("Lease", "%v, want at least 1ms; it must cover one run of the operation", c.Lease)
	}
	switch need := RetentionTime(c.Caller, c.Retry, c.Network, c.Clock); {
	case c.TTL <= 0:
		broken("TTL", "%v, want more than 0; use Forever for records that never expire", c.TTL)
	case c.TTL < need:
		broken("TTL", "%v is less than Caller + Retry + Network + Clock = %v; a late retry would run as a new operation", c.TTL, need)
	case c.Lease > c.TTL:
		broken("Lease", "%v is longer than the TTL of %v; a claim must not outlive its record", c.Lease, c.TTL)
	}
	if need := RetentionTime(c.Retry, c.Lease, c.Clock); c.Window > 0 && need > c.Window {
		broken("Window", "%v is less than Retry + Lease + Clock = %v; the last retry could arrive after the target has forgotten the first attempt", c.Window, need)
	}
	switch {
	case c.Rate < 0 || math.IsNaN(c.Rate) || math.IsInf(c.Rate, 0):
		broken("Rate", "%v, want a finite number of 0 or more", c.Rate)
	case c.Capacity < 0:
		broken("Capacity", "%d, want 0 or more", c.Capacity)
	case c.Rate > 0 && c.Capacity > 0 && c.TTL == Forever:
		broken("Capacity", "%d is not enough for ever at %v a second; leave Capacity 0 with a TTL of Forever", c.Capacity, c.Rate)
	case c.Rate > 0 && c.Capacity > 0 && c.TTL > 0:
		if need := RequiredCapacity(c.Rate, c.TTL); c.Capacity < need {
			broken("Capacity", "%d is less than 1.2 x %v/s x %v = %d records; the store would fill up and refuse", c.Capacity, c.Rate, c.TTL, need)
		}
	}
	if len(errs) > 0 {
		return Policy{}, errors.Join(errs...)
	}
	if c.StoreTimeout == 0 {
		c.StoreTimeout = min(5*time.Second, c.Lease/2)
	}
	return Policy{config: c}, nil
}

// Terms returns the durations for a claim under the policy. If Window is 0 or [Forever],
// ResendFor equals Window.
//
// Otherwise ResendFor is Window - Lease - Clock, at least 0. A second run that begins in
// this time ends within Window, even if it takes the whole Lease and the clocks differ by
// Clock.
func (p Policy) Terms() Terms {
	c := p.config
	resend := c.Window
	if c.Window > 0 && c.Window < Forever {
		resend = max(c.Window-c.Lease-c.Clock, 0)
	}
	return Terms{Lease: c.Lease, TTL: c.TTL, ResendFor: resend}
}

// Config returns the configuration with defaults filled in.
func (p Policy) Config() PolicyConfig { return p.config }

func (p Policy) check() error {
	if p.config.Lease == 0 {
		return &InvalidError{Field: "Policy", Rule: "zero; use NewPolicy"}
	}
	return nil
}

// RetentionTime returns the minimum lifetime of a record. The arguments are the caller's
// deadline, the time for retries, the network delay and the clock difference. The result
// is their sum, at most [Forever].
func RetentionTime(times ...time.Duration) time.Duration {
	var total time.Duration
	for _, d := range times {
		if d > Forever-total {
			return Forever
		}
		total += d
	}
	return total
}

// RequiredCapacity returns the number of records that a store needs for a rate of new
// operations a second and a TTL, with a margin of 20 percent, rounded up.
func RequiredCapacity(rate float64, ttl time.Duration) int64 {
	n := math.Ceil(1.2*rate*ttl.Seconds() - 1e-6)
	if n >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(n)
}

// CollisionProbability returns the approximate probability that any two of n keys with
// the given number of random bits are equal: n(n-1) / 2^(bits+1), at most 1. The result
// does not apply to guessed or badly generated keys.
func CollisionProbability(n int64, bits int) float64 {
	x := float64(n)
	return min(math.Ldexp(x*(x-1)/2, -bits), 1)
}
