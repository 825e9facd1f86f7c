package sqsfifo

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// StoreConfig configures a store, in which a producer remembers events for longer than
// SQS's five minutes and across restarts. The zero value means no store.
//
// Before the producer sends an event, it writes a claim of the event to the store. While
// the claim lasts, no other producer of the store sends the event. One write contains the
// claims of all events of a request. The producer claims the next events in advance, at
// most 128 in all, so that their requests need not wait for the store. After the request,
// the producer records the results in the store.
//
// The claims and results have these consequences:
//
//   - An event that any producer of the store sent within the TTL is a duplicate. Its
//     receipt has the original's MessageID and SequenceNumber, and no request is made.
//   - If the outcome of an attempt is unknown, for example after a crash, the event is
//     sent again while SQS still recognises the message. The event then has the bytes and
//     the message group of its first attempt, even if Identify or the encoder now returns
//     others. After that time, the producer refuses the event with an [*InDoubtError],
//     until an operator resolves the record in the store (see [UnresolvedPolicy]).
//   - After a crash, a claimed event counts as attempted, even if its request had not
//     started.
//   - A dedupe key used again with another payload within the TTL is refused with a
//     [*ConflictError]. With another event_time, event_id or message group, the key still
//     means the same event. The producer reports this difference like a finding of EnforcementWarn.
//   - While the store does not answer, the producer sends nothing (but see FailOpen).
//     Events wait until their context ends or Delivery.RetryFor is over, which counts from
//     their submission.
//
// The store identifies an event by its dedupe key, the queue's ARN, the event_source and
// the field Client. The store does not keep attributes. If an event is sent again with
// other attributes, only the producer's own memory of the last five minutes notices this.
//
// A [*NotStoredError] means that no other producer had stored the event at the time of the
// store's last answer. Another producer may have stored the event since then. A resend is
// still safe, because the producer asks the store again.
//
// In two cases, a NotStoredError does not rely on an answer of the store, and another
// producer may have stored the event at any time:
//
//   - The buffer is full ([ErrBufferFull]).
//   - The event cannot be claimed, for example because the queue's ARN is unknown.
//
// Two producers of one message group have no common order. An event may be sent twice:
//
//   - by a process stopped for more than five minutes after its last check of a claim,
//     before its request reaches the network
//   - by hardware that loses confirmed writes
//   - with a store whose clock was set back without notice (see the limits of the store's
//     package)
//   - with FailOpen or UnresolvedResend
type StoreConfig struct {
	// Store keeps the records. Several producers and processes may share a store. The
	// store must outlive the producer.
	Store idempotency.Store

	// Client names the sender. Producers with different Clients do not share events, even
	// if all else is equal. The empty string is a client like any other.
	Client string

	// Queue names the queue in the store's keys. Empty means the queue's ARN. The producer
	// derives the ARN from an AWS URL, and asks the queue otherwise. Set Queue if the URL
	// is not an AWS URL and the queue does not report its ARN.
	Queue string

	// Owner names this process across restarts, for example "exporter-3" or the name of a
	// StatefulSet's pod. If the process claimed an event before a restart, it may send
	// the event again immediately after the restart. Without an Owner, it must wait until
	// the old claim ends, after about 30 seconds.
	//
	// At most one process of an owner may run at a time. If two run, the process that
	// started later takes over events from the other, and both may send an event. SQS
	// recognises the second message for five minutes. The store accepts only the result
	// of the process that took over.
	//
	// The clocks at the two starts decide which process started later. If the clock was
	// set back between the starts, Owner has no effect.
	Owner string

	// TTL is the time for which an event is remembered, from the claim for its first
	// attempt. Zero means 7 days. With [idempotency.Forever] events are never forgotten.
	//
	// TTL must be at least Delivery.RetryFor plus 25 seconds for the last request and for
	// differences between clocks. It should be longer than the delay of any retrying
	// caller, replay or redrive. A suspension of the machine between the claim and the
	// request counts as part of TTL.
	TTL time.Duration

	// Timeout limits each call of the store. Zero means 5 seconds.
	Timeout time.Duration

	// Unresolved selects the treatment of an unresolved event. An event is unresolved if an
	// earlier attempt may have stored it so long ago that SQS may not recognise a resend.
	Unresolved UnresolvedPolicy

	// FailOpen sends events without a claim while the store does not answer. Stats and
	// sqs_fifo.producer.store.unclaimed count these attempts.
	//
	// The store never gets a record of these events, so only SQS deduplicates them, for
	// five minutes. If this or another producer sends such an event again later, SQS
	// delivers it a second time.
	FailOpen bool
}

// UnresolvedPolicy is the treatment of an unresolved event, see [StoreConfig].
type UnresolvedPolicy uint8

const (
	// UnresolvedRefuse does not send the event: its error is an [*InDoubtError] wrapping
	// an [*idempotency.UnresolvedError]. An operator must find out whether the event was
	// stored, and resolve its record.
	UnresolvedRefuse UnresolvedPolicy = iota

	// UnresolvedResend sends the event again. Consumers may receive the event twice.
	UnresolvedResend
)

const (
	usualTTL          = idempotency.TTLWebhook
	usualStoreTimeout = 5 * time.Second
	maxStoreTimeout   = time.Minute
	maxNameBytes      = 200 // longest Client, Queue and Owner in bytes, because the store's keys have a limit
)

// isZero reports whether all fields are zero. The producer then has no store.
func (c *StoreConfig) isZero() bool {
	return reflect.ValueOf(*c).IsZero()
}

func (c *StoreConfig) timeout() time.Duration {
	return cmp.Or(c.Timeout, usualStoreTimeout)
}

// lease returns the duration of a claim: time for one request, for one slow call of the
// store, and for a difference between clocks.
func (c *StoreConfig) lease() time.Duration {
	return window.Request + c.timeout() + window.Slack
}

// retryFor returns the longest Delivery.RetryFor with a store, which is also the default.
// A retry that begins at the end of this time must reach SQS within the deduplication
// interval, even if the retry takes a whole lease and the clocks differ by window.Slack.
func (c *StoreConfig) retryFor() time.Duration {
	return min(window.RetryFor, window.Interval-c.lease()-window.Slack)
}

// policy returns the idempotency policy of the store. It returns an error if the store's
// times, for example the TTL, do not fit the parameter `retryFor`.
func (c *StoreConfig) policy(retryFor time.Duration) (idempotency.Policy, error) {
	return idempotency.NewPolicy(idempotency.PolicyConfig{
		TTL: cmp.Or(c.TTL, usualTTL), Retry: cmp.Or(retryFor, c.retryFor()), Network: window.Request, Clock: window.Slack,
		Lease: c.lease(), Window: window.Interval, Resend: c.Unresolved == UnresolvedResend, StoreTimeout: c.timeout(),
	})
}

func (c *StoreConfig) validate(delivery Delivery, refuse func(field, rule string)) {
	if c.isZero() {
		return
	}
	if isNil(c.Store) {
		refuse("Store.Store", "nil, and other fields of Store are set; set the store, for example one of package sqlstore")
	}
	for _, f := range []struct{ name, text string }{{"Client", c.Client}, {"Queue", c.Queue}, {"Owner", c.Owner}} {
		if len(f.text) > maxNameBytes {
			refuse("Store."+f.name, fmt.Sprintf("%d bytes, want at most %d", len(f.text), maxNameBytes))
		}
	}
	if c.Unresolved > UnresolvedResend {
		refuse("Store.Unresolved", "unknown value; use UnresolvedRefuse or UnresolvedResend")
	}
	if c.Timeout < 0 || c.Timeout > maxStoreTimeout {
		refuse("Store.Timeout", fmt.Sprintf("%v is not between 0 and %v", c.Timeout, maxStoreTimeout))
		return
	}
	if delivery.RetryFor < 0 {
		return // Delivery.validate reports this fault
	}
	_, err := c.policy(delivery.RetryFor)
	for _, err := range split(err) {
		var rule *idempotency.InvalidError
		switch {
		case !errors.As(err, &rule):
			refuse("Store", err.Error())
		case rule.Field == "PolicyConfig.Window":
			refuse("Delivery.RetryFor", fmt.Sprintf("%v is too long with a store: with %v for a claim and a request, and %v for clocks, it must fit into the deduplication interval of %v; use at most %v",
				delivery.RetryFor, c.lease(), window.Slack, window.Interval, c.retryFor()))
		default:
			refuse(strings.Replace(rule.Field, "PolicyConfig", "Store", 1), rule.Rule)
		}
	}
}

func split(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}
