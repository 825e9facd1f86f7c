package idempotency

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// TTLs by kind of operation. A dataset run is kept [Forever].
const (
	TTLRequest = 24 * time.Hour      // an HTTP request
	TTLWebhook = 7 * 24 * time.Hour  // a webhook delivery
	TTLPayment = 30 * 24 * time.Hour // a payment, for settlement
)

// PolicyConfig describes a kind of operation. [NewPolicy] checks it.
type PolicyConfig struct {
	// TTL is how long records are kept, from their creation. It must be at least the
	// sum of the four times below. [Forever] is never deleted.
	TTL time.Duration

	// Caller is the caller's own deadline, Retry is how long after the first attempt
	// the last one may begin, Network is how late a request may arrive, and Clock is
	// the largest difference between two clocks that matter.
	Caller, Retry, Network, Clock time.Duration

	// Lease is how long one run of the operation may take, store calls included.
	Lease time.Duration

	// Window is for how long the target of the operation recognises a repetition by
	// itself: 5 minutes for a send to SQS, 0 for a target that does not, [Forever] for an
	// operation that may be repeated at any time. Within it, an operation whose outcome
	// is unknown runs again; Retry, one Lease and Clock must fit into it.
	Window time.Duration

	// RunAgain runs an operation whose outcome is unknown again outside its window.
	// The default is to hold it as [Indeterminate].
	RunAgain bool

	// Rate is the number of new operations a second, and Capacity the number of records
	// that the store has room for. They are checked against each other if both are set.
	Rate     float64
	Capacity int64

	// StoreTimeout bounds one call of the store. The default is 5 s, or half the lease
	// if that is less.
	StoreTimeout time.Duration
}

// Policy is a [PolicyConfig] that was checked. The zero Policy is not usable.
type Policy struct{ config PolicyConfig }

// PolicyError is a rule that a [PolicyConfig] breaks.
type PolicyError struct {
	Field string // of PolicyConfig
	Rule  string // what was found, the rule, and the way out
}

func (e *PolicyError) Error() string {
	return fmt.Sprintf("idempotency: PolicyConfig.%s: %s", e.Field, e.Rule)
}

// NewPolicy checks the configuration. The error joins one [*PolicyError] for each
// rule that is broken.
func NewPolicy(c PolicyConfig) (Policy, error) {
	var errs []error
	broken := func(field, format string, args ...any) {
		errs = append(errs, &PolicyError{Field: field, Rule: fmt.Sprintf(format, args...)})
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

// Terms returns the terms of a claim under the policy. ResendFor is the window less
// the lease and the clock difference: an attempt that begins within it reaches the
// target while it remembers the first one.
func (p Policy) Terms() Terms {
	c := p.config
	resend := c.Window
	if c.Window > 0 && c.Window < Forever {
		resend = max(c.Window-c.Lease-c.Clock, 0)
	}
	return Terms{Lease: c.Lease, TTL: c.TTL, ResendFor: resend}
}

// Config returns the configuration with its defaults filled in.
func (p Policy) Config() PolicyConfig { return p.config }

func (p Policy) check() error {
	if p.config.Lease == 0 {
		return &InvalidError{Field: "Policy", Rule: "zero; use NewPolicy"}
	}
	return nil
}

// RetentionTime returns the sum of the times that a record must survive: the
// caller's deadline, the retry horizon, the delay of the network and the uncertainty of the
// clocks. It is at most [Forever].
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

// RequiredCapacity returns the number of records that a store needs for a rate of
// new operations a second and a TTL, with a margin of 20 percent, rounded up.
func RequiredCapacity(rate float64, ttl time.Duration) int64 {
	n := math.Ceil(1.2*rate*ttl.Seconds() - 1e-6)
	if n >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(n)
}

// CollisionProbability returns about how likely it is that any two of n keys with the
// given number of random bits are equal: n(n-1) / 2^(bits+1), at most 1. It says
// nothing of keys that are guessed or generated badly.
func CollisionProbability(n int64, bits int) float64 {
	x := float64(n)
	return min(math.Ldexp(x*(x-1)/2, -bits), 1)
}
