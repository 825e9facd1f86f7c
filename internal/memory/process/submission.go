package process

import (
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// Submission keeps the state of one submission between its attempts. The zero value is
// ready for use; call Refresh at the start of the submission.
type Submission struct {
	// Known is the submission's copy of the Memory's knowledge about the event. Refresh,
	// Admit, Judge, Record and Conclude update it. If an attempt may have stored the
	// event, Known keeps this fact even after the Memory has forgotten the event.
	Known Known

	// reuse and other describe another message with the dedupe key, or are zero. They may
	// outlast the other message's record.
	reuse verdict.Reuse
	other Known

	made         Instant // instant of the first Refresh, or zero
	firstAttempt Instant // start of the first attempt, or zero

	// groupHighest is the highest known sequence number of the message group at the start
	// of the first attempt.
	groupHighest sequence

	// priorID is the hash of the event's message ID if the ID was known before the
	// submission's first attempt, else zero. With Admit's parameter `anyway`, it may be the ID of another
	// event with the same dedupe key: SQS may drop this event as a duplicate of that event.
	priorID summary

	// began is the start of the current attempt; zero if no attempt is under way.
	began Instant

	// The method `record`.begin sets the following fields at the start of the attempt.

	recordStart Instant // copy of record.firstStart

	// storedID is the hash of the message ID if the event was already stored, else zero.
	storedID summary

	// recordEnd is the value of record.lastEnd before the attempt if the event was in
	// doubt, else zero. If SQS refuses the attempt, endCounted restores this value.
	recordEnd Instant

	// counted reports that the record counts the attempt as under way. It is false if the
	// event was already stored.
	counted bool

	// retained is true if the last judgement was KindWait, because an earlier submission may
	// need the event's old record.
	retained bool

	storedIt bool // SQS confirmed an attempt, and Record reported no duplicate

	// mayFree permits Release to free the event's record. It is false for a submission
	// without attempts.
	mayFree bool
}

// WithOtherMessage returns the Submission for a message that is sent instead of the first
// message. It keeps only the instant of the first Refresh. Call WithOtherMessage before
// the first attempt.
func (sub *Submission) WithOtherMessage() Submission { return Submission{made: sub.made} }

// updateKnown sets sub.Known to k, the Memory's current knowledge of the event. But it
// leaves sub.Known unchanged if the Memory may have forgotten an attempt that may have
// stored the event. The parameter `expiry` is the result of Memory.expiryTime.
func (sub *Submission) updateKnown(expiry Instant, k Known) {
	was := sub.Known
	switch {
	case !mayBeStored(was.State):
	case k.State != verdict.StateUnknown && k.Since == was.Since:
	case was.State == verdict.StateStored && k.State != verdict.StateStored:
		return
	case expiry >= was.keptUntil():
		// The record may have expired, so its absence does not prove that SQS refused the
		// attempts in sub.Known. Keep them.
		return
	}
	sub.Known = k
}

// updateCollision records in sub.reuse and sub.other whether another message was sent with the
// event's dedupe key.
func (sub *Submission) updateCollision(now, expiry Instant, ev *Event, own, byKey *record) {
	switch other := &sub.other; {
	case !own.exists && byKey.exists:
		// Another message has the dedupe key.
		sub.reuse, sub.other = ev.is.collision(byKey.value.fingerprint), byKey.known(now)
	case own.exists, !mayBeStored(other.State), expiry < other.keptUntil():
		// There was no collision, or it has ended, for one of three reasons: the event has
		// its own record; SQS does not have the other message unchanged (mayBeStored); or
		// the other message's record is gone before keptUntil. The Memory frees a record
		// that early only if SQS refused the message.
		sub.reuse, sub.other = verdict.ReuseNone, Known{}
	}
}

// isLate reports whether it is too late to start an attempt now: SQS may have forgotten
// the event before the attempt arrives.
func (k *Known) isLate(now Instant) bool {
	return mayBeStored(k.State) && now > k.ResendBefore()
}

// arrivesBy returns the latest instant at which the request of the current attempt can
// reach SQS: normally window.Request after the attempt's start, but not before now.
func (sub *Submission) arrivesBy(now Instant) Instant { return max(now, sub.began.Add(window.Request)) }

// earliestStart returns the earliest time at which SQS may have stored the last confirmed
// copy of the event.
func (sub *Submission) earliestStart() Instant {
	if sub.counted {
		return sub.recordStart
	}
	// A copy of the event was already stored when the current attempt began. SQS has now
	// confirmed a newer copy, so an attempt of this submission stored the newer copy.
	return sub.firstAttempt
}
