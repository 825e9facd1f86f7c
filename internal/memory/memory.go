// Package memory decides which events may be sent now, and records the outcomes of sent
// events.
//
// A submission is one call to send an event. It may need several attempts; each attempt is
// part of a request to SQS. An event is in doubt if an attempt may or may not have stored
// the event in SQS.
//
// Problem: two memories must allow an attempt. Package process remembers the events that
// this process sent in the last five minutes. Package store claims events in an optional
// idempotency.Store, which outlives the process: a claim is the permission to send an
// event. The two memories use different clocks and data. Without this package, a caller
// would have to ask both in the right order and merge the answers.
//
// Guarantees: [Memory.Admit] returns KindGo only if both memories allow the attempt. The
// event is then in doubt in both memories until [Memory.Attempted] records proof.
//
// Limits: the limits of packages process and store. The package does not build requests:
// the caller decides which events are in a request, and in which order.
//
// Life of a submission:
//
//	m.Claim(&r, key, fingerprint, message, dataset) // with a store; prepares the claim
//	m.LookUp(ctx, attempts)                         // with a store; reads records, claims nothing
//	m.Identify(&r, key, group, body, payload, attributes)
//	m.Prepare(ctx, records)                         // with a store, optional; claims events
//	m.Admit(ctx, attempts)                          // before each attempt; claims events
//	m.Attempted(ended, lead)                        // after each attempt for which Admit returned KindGo
//	m.Drop(&r)                                      // in place of the attempt
//	m.Conclude(&r, altered, refused, sent)          // at most once, if no attempt proved that SQS stored the event
//	m.Release(&r, altered)                          // when the attempts have ended
//	m.Leave(&r)                                     // once, when the outcome is reported
package memory

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/process"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/store"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// Options configures a [Memory]. The zero value means no store and an unlimited number of
// events.
type Options struct {
	// AcceptTimes permits one more proof that an event is a duplicate: the time at which
	// SQS accepted the message. SQS's sequence number contains this time. If the time is
	// before the submission, an earlier process or another process sent the message.
	//
	// The other proofs are SQS's message IDs and the order of sequence numbers.
	AcceptTimes bool

	// MaxKeys is the maximum number of events in the memory of this process; 0 means
	// unlimited.
	MaxKeys int

	// Clock is the memory's clock; nil means the clock of this machine.
	Clock *process.Clock

	// Store may be nil. All fields below have no effect without a store.
	Store    idempotency.Store
	Policy   idempotency.Policy
	FailOpen bool
	Owner    string    // name of this process in its claims; "" for no name
	Began    time.Time // start of this process

	// Note, unless nil, is called after each write to the store. The argument is nil if
	// the store answered, even with [idempotency.ErrStaleClaim] or an
	// [*idempotency.InvalidError]. Otherwise the argument is the store's error. Note is
	// not called if the write failed after its context had ended, because the store may
	// not be the cause.
	Note func(error)

	// Hide replaces the texts of store errors. A nil Hide leaves the errors unchanged.
	Hide func(error) error

	// Recompute returns the fingerprint of a stored body. The second result is false if
	// the body has no fingerprint.
	Recompute func(body []byte) (idempotency.Fingerprint, bool)
}

// Memory combines the memory of this process (package process) with an optional store
// (package store). Memory is safe for concurrent use.
type Memory struct {
	process *process.Memory
	claims  *store.Claimant // nil without a store
}

// New returns an empty memory.
func New(o Options) *Memory {
	m := &Memory{process: process.New(process.Options{AcceptTimes: o.AcceptTimes, MaxKeys: o.MaxKeys, Clock: o.Clock})}
	if o.Store != nil {
		m.claims = store.New(store.Options{
			Store: o.Store, Policy: o.Policy, Attempt: window.Request, FailOpen: o.FailOpen, Owner: o.Owner, Began: o.Began, Recompute: o.Recompute, Note: o.Note, Hide: o.Hide,
			Now: func() time.Duration { return time.Duration(m.process.Now()) },
		})
	}
	return m
}

// Instant is a time on the clock of a [Memory]. The clock continues while the machine is
// suspended.
type Instant = process.Instant

// Message holds an event's bytes as recorded in the store.
type Message = store.Message

// StoreStats counts claims in the store, results and releases of claims, and errors.
type StoreStats = store.Stats

// Record holds the data of one submission of an event. The zero Record is ready for use.
// Only one goroutine at a time may use a Record, but Conclude and Refresh may run
// concurrently with Prepare, Admit and Attempted.
type Record struct {
	// SendAnyway sends the event in spite of a collision and reports the collision.
	SendAnyway bool

	event      process.Event
	submission process.Submission
	identified bool
	claim      atomic.Pointer[store.Claim] // nil without a store
	// Set by DeferClaim: the claim needs the name of the queue, which is not known yet.
	deferred bool
	// Set if the event is sent without a claim, because the store has another event with
	// the key.
	unclaimed atomic.Bool
	knowledge *Knowledge // nil before Conclude; most submissions never call Conclude
}

// Claim prepares an event's claim in the store. Claim requires a store. The body is not
// copied and must not change. The error is an [*idempotency.InvalidError].
func (m *Memory) Claim(r *Record, key idempotency.Key, is idempotency.Fingerprint, sent Message, d idempotency.Dataset) (err error) {
	claim, err := m.claims.Claim(key, is, sent, d)
	if err == nil {
		r.claim.Store(claim)
	}
	return err
}

// DeferClaim postpones the submission's claim until the name of the queue is known: the
// name is part of the claim's key. A claim is the store's permission to send. Until the
// caller calls Memory.Claim, it is unknown whether another process has stored the event
// (see StateUnanswered).
func (r *Record) DeferClaim() { r.deferred = true }

// HasClaim reports whether the submission has a claim.
func (r *Record) HasClaim() bool { return r.claim.Load() != nil }

// DropClaim ends the submission's use of the store: it removes the claim, and undoes
// DeferClaim. Conclude then returns only the knowledge of this process.
func (r *Record) DropClaim() {
	r.claim.Store(nil)
	r.deferred = false
}

// Adopt returns the message that the store has recorded for the event, and makes it the
// message of the submission's claim. Call Adopt after a verdict of KindAdopt.
//
// An earlier submission may have sent the recorded message, so this submission must send
// the same bytes.
func (r *Record) Adopt() Message { return r.claim.Load().Adopt() }

// Identify sets the message of a submission and returns the current instant. Call Identify
// after LookUp, and again after each Admit with KindAdopt. If LookUp or Admit
// returned this Kind, the store has recorded another message for the event: call Identify
// with the result of Adopt.
//
// The parameter `payload` is the part of the body that stays the same if the caller builds
// the event again. The parameter `attributes` is a digest of the identity attributes. If
// these attributes differ, two messages with the same body are different events.
func (m *Memory) Identify(r *Record, key, group, body, payload string, attributes [32]byte) Instant {
	if r.identified {
		m.process.Release(m.process.Now(), &r.event, &r.submission)
		r.submission = r.submission.WithOtherMessage()
	}
	r.event = m.process.Event(key, group, body, payload, attributes)
	r.identified = true
	now := m.process.Now()
	m.process.Refresh(now, &r.event, &r.submission)
	return now
}

// Leave ends a submission's wait for its outcome. After a suspension of the machine, the
// memory keeps expired records only while submissions wait. Call Leave once for each
// Record, when the outcome is reported.
func (m *Memory) Leave(r *Record) {
	if r.identified {
		m.process.Leave()
	}
}

// BodyHash returns the body's SHA-256 in hexadecimal, or "" before Identify.
func (r *Record) BodyHash() string {
	if !r.identified {
		return ""
	}
	return r.event.BodyHash()
}

// WasSentHere reports whether this process had sent the event before. A send that SQS
// refused does not count. Call it before the submission's first Admit: later, the
// submission's own attempts count too.
func (r *Record) WasSentHere() bool { return r.submission.Known.State >= verdict.StateInDoubt }

// WasSentElsewhere reports whether the store knows of an attempt by another submission.
// Call it before the first attempt of this submission, because a confirmed attempt of
// this submission counts too.
func (r *Record) WasSentElsewhere() bool {
	return r.claim.Load() != nil && r.claim.Load().Known().State >= verdict.StateInDoubt
}

// HasStore reports whether the memory has a store.
func (m *Memory) HasStore() bool { return m.claims != nil }

// Wall returns an instant's wall-clock time according to the clock's current setting.
func (m *Memory) Wall(i Instant) time.Time { return m.process.Wall(i) }

// Recently returns the current instant at low cost. After a suspension of the machine,
// the result may at first lag by the length of the suspension.
func (m *Memory) Recently() Instant { return m.process.Recently() }

// Since returns the duration since an instant. After a suspension of the machine, the
// result may at first be too short by the length of the suspension.
func (m *Memory) Since(i Instant) time.Duration { return m.process.Recently().Sub(i) }

// Elapsed is like Since, but always includes suspensions of the machine. Elapsed takes up
// to about 0.5 µs.
func (m *Memory) Elapsed(i Instant) time.Duration { return m.process.Now().Sub(i) }

// Len returns the number of events in the memory of this process. Len visits every event.
func (m *Memory) Len() int { return m.process.Len(m.process.Now()) }

// Held returns the number of records in the memory of this process, including expired
// records that are not freed yet. Options.MaxKeys limits this number. Held takes constant
// time.
func (m *Memory) Held() int { return m.process.Held() }

// Sweep frees the events forgotten by SQS and reports whether the memory is empty. Call
// Sweep once a minute.
func (m *Memory) Sweep() (empty bool) { return m.process.Sweep(m.process.Now()) }

// Close writes the remaining updates to the store: results of events, and releases of
// claims. It stops when ctx ends, or after ten seconds. It then waits at most one second
// for store calls that ignore their context.
//
// Close returns the number of updates lost since New. If any were lost, err is the store's
// last error or the reason for the last loss.
func (m *Memory) Close(ctx context.Context) (lost int64, err error) {
	if m.claims == nil {
		return 0, nil
	}
	return m.claims.Close(ctx)
}

// StoreStats returns the counts of the store, zero without a store.
func (m *Memory) StoreStats() (s StoreStats) {
	if m.claims == nil {
		return s
	}
	return m.claims.Stats()
}
