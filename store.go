package sqsfifo

import (
	"errors"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/dedup"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
)

// StoreConfig lets a producer remember events for longer than the five minutes of SQS,
// and beyond its own end. The zero value has no store.
//
// With a store, an event is claimed durably before a request with it leaves, in one
// write for all events of the request, and its result is recorded after. Then:
//
//   - An event that any producer with the store has sent within the TTL is a duplicate,
//     with the MessageID and SequenceNumber of the original, and makes no request.
//   - An event whose attempt has no known outcome, after a crash for example, is sent
//     again as the bytes and in the message group of its first attempt, whatever Identify
//     and the encoder make of it now, while SQS still recognises them. Later it is held:
//     its error is an [*InDoubtError], until somebody settles the record in the store.
//   - A dedupe key that comes with another payload within the TTL is refused with a
//     [*ConflictError]. One that comes with another event_time, event_id or message
//     group is the same event, and is reported like a finding of Warn.
//   - While the store does not answer, nothing is sent: events wait until their context
//     ends or Delivery.RetryFor is over.
//
// An event is known by its dedupe key, the queue, its event_source and Client. The five
// minutes in the memory of the producer go on beside the store; attributes are compared
// there alone.
//
// What is said of an event follows from the store, too: it is not said to be not stored
// as long as the store has not answered, or has answered that another producer may be
// sending it. The last answer counts: while an event waits here without a claim, another
// producer may store it, and the one whose context ends says "not stored". To send it
// again is safe, because the store knows it. Only [Producer.TrySend] with a full buffer
// says so without the store.
//
// Not promised: that nothing is sent twice by a process that was stopped for more than
// five minutes between its last look at a claim and the network, by hardware that loses
// what it has confirmed, or with FailOpen; and an order between two producers of one
// message group.
type StoreConfig struct {
	// Store keeps the records. Several producers and processes may share one. It must
	// outlive the producer.
	Store idempotency.Store

	// Client is who sends. Producers with another Client do not share events, even if
	// all else is equal. Empty is one client.
	Client string

	// Queue names the queue in the keys of the store, with its ARN for example. Empty
	// means the URL. Set it where processes reach one queue by different URLs.
	Queue string

	// TTL is how long an event is remembered after its first attempt. It must be longer
	// than Delivery.RetryFor and five minutes together need, and should be longer than any
	// caller, replay or redrive may come back. Zero means 7 days, [idempotency.Forever]
	// that nothing is forgotten.
	TTL time.Duration

	// Timeout bounds one call of the store. Zero means 5 seconds.
	Timeout time.Duration

	// Indeterminate is what becomes of an event whose outcome is unknown when SQS does
	// not recognise it any more.
	Indeterminate Indeterminate

	// FailOpen sends events without a claim while the store does not answer. They are
	// protected by the five minutes of SQS alone, and the store is not told of them when it
	// answers again: what is sent once more after five minutes, by this producer, too, is
	// stored twice. They are counted in Stats and in sqs_fifo.producer.store.unclaimed.
	FailOpen bool

	// DurableReceipts lets a receipt wait until the store has the result. Without it the
	// result is recorded within about 100 milliseconds; if the process ends before, an
	// event that comes again later than five minutes is held as indeterminate. If the
	// store fails, or the context ends, the receipt is given nevertheless, and the result is
	// recorded as soon as the store takes it.
	DurableReceipts bool
}

// Indeterminate says what becomes of an event that may be stored, by an attempt that SQS
// has forgotten.
type Indeterminate uint8

const (
	// Hold does not send it: its error is an [*InDoubtError] that wraps an
	// [*idempotency.IndeterminateError]. Somebody has to find out what became of it and
	// settle its record.
	Hold Indeterminate = iota

	// SendAgain sends it. It may be delivered twice.
	SendAgain
)

const (
	usualTTL          = idempotency.TTLWebhook
	usualStoreTimeout = 5 * time.Second
	mostStoreTimeout  = time.Minute
	mostClient        = 200 // bytes, so that a scope has room for the rest
)

// isZero reports whether there is no store.
func (c *StoreConfig) isZero() bool {
	return c.Store == nil && c.Client == "" && c.Queue == "" && c.TTL == 0 && c.Timeout == 0 &&
		c.Indeterminate == Hold && !c.FailOpen && !c.DurableReceipts
}

func (c *StoreConfig) timeout() time.Duration {
	if c.Timeout == 0 {
		return usualStoreTimeout
	}
	return c.Timeout
}

// lease covers the claim, one request, and that both are slow.
func (c *StoreConfig) lease() time.Duration {
	return sqscall.Timeout + c.timeout() + dedup.Slack
}

// retryFor is the usual value of Delivery.RetryFor: with one lease it has to fit into the
// interval.
func (c *StoreConfig) retryFor() time.Duration {
	return min(defaultRetryFor, dedup.Interval-c.lease()-dedup.Slack)
}

// policy checks the times of the store against those of the delivery.
func (c *StoreConfig) policy(retryFor time.Duration) (idempotency.Policy, error) {
	if retryFor == 0 {
		retryFor = c.retryFor()
	}
	ttl := c.TTL
	if ttl == 0 {
		ttl = usualTTL
	}
	return idempotency.NewPolicy(idempotency.PolicyConfig{
		TTL: ttl, Retry: retryFor, Network: sqscall.Timeout, Clock: dedup.Slack,
		Lease: c.lease(), Window: dedup.Interval, RunAgain: c.Indeterminate == SendAgain, StoreTimeout: c.timeout(),
	})
}

func (c *StoreConfig) validate(delivery Delivery, refuse func(field, rule string)) {
	if c.isZero() {
		return
	}
	if isNil(c.Store) {
		refuse("Store.Store", "nil, and other fields of Store are set; set the store, for example one of package sqlstore")
	}
	for _, f := range []struct{ name, text string }{{"Client", c.Client}, {"Queue", c.Queue}} {
		if len(f.text) > mostClient {
			refuse("Store."+f.name, fmt.Sprintf("%d bytes, want at most %d", len(f.text), mostClient))
		}
	}
	if c.Indeterminate > SendAgain {
		refuse("Store.Indeterminate", "unknown value; use Hold or SendAgain")
	}
	if c.Timeout < 0 || c.Timeout > mostStoreTimeout {
		refuse("Store.Timeout", fmt.Sprintf("%v is not between 0 and %v", c.Timeout, mostStoreTimeout))
		return
	}
	if delivery.RetryFor < 0 {
		return // which is another fault
	}
	_, err := c.policy(delivery.RetryFor)
	for _, err := range split(err) {
		var rule *idempotency.PolicyError
		switch {
		case !errors.As(err, &rule):
			refuse("Store", err.Error())
		case rule.Field == "Window":
			refuse("Delivery.RetryFor", fmt.Sprintf("%v is too long with a store: with %v for a claim and a request, and %v for clocks, it must fit into the deduplication interval of %v; use at most %v",
				delivery.RetryFor, c.lease(), dedup.Slack, dedup.Interval, c.retryFor()))
		default:
			refuse("Store."+rule.Field, rule.Rule)
		}
	}
}

// split returns the errors that are joined in err.
func split(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}
