package process

import "github.com/kansas-frontier-matrix/sqsfifo/internal/window"

// Submission keeps the state of one submission between its attempts. The zero value is
// ready for use; call Refresh at the start of the submission.
type Submission struct {
	// Known is the knowledge of the event. Refresh, Admit, Judge, Record and Conclude
	// update it. If an attempt may have stored the event, Known stays InDoubt or Stored
	// even after the Memory has forgotten the event.
	Known Known

	// collision describes another message with the event's dedupe key; zero without such a
	// message. It stays set when the record of that message expires.
	collision Judgement

	made         Instant // instant of the first Refresh, or zero
	firstAttempt Instant // start of the first attempt, or zero

	// groupHighest is the highest known sequence number of the message group at the start
	// of the first attempt.
	groupHighest sequence

	// priorID is the hash of a message ID known before the first attempt; zero without such
	// an ID. An answer with this ID proves a duplicate. The ID is from the stored event or,
	// with AdmitAnyway, from another stored event with the same dedupe key.
	priorID summary

	// began is the start of the current attempt; zero if no attempt is under way.
	began Instant

	// The method record.begin sets the following fields at the start of the attempt.

	// recordStart is the record's firstStart after the call of record.begin.
	recordStart Instant

	// storedID is the hash of the message ID if the event was already stored, else zero.
	storedID summary

	// recordEnd is the record's lastEnd before the attempt, if the event was in doubt
	// without an attempt under way; otherwise zero. If SQS refuses the attempt,
	// record.endCounted restores lastEnd.
	recordEnd Instant

	// counted reports that the record counts the attempt as under way. It is false if the
	// event was already stored.
	counted bool

	// Idle reports that no attempt of the submission was under way when Conclude was
	// called.
	Idle bool

	// Retained reports that the last judgement before Conclude was of the kind Retained.
	Retained bool

	concluded bool // Conclude was called: no further attempt may begin
	storedIt  bool // SQS confirmed an attempt, and Record reported no duplicate

	// mayFree makes Release free the event's record, provided that SQS refused all attempts.
	// The methods record.begin and record.endCounted set mayFree.
	mayFree bool
}

// WithOtherMessage returns the Submission for another message that replaces the message of
// sub. The result keeps only the instant of the first Refresh. Call WithOtherMessage before
// the first attempt.
func (sub *Submission) WithOtherMessage() Submission { return Submission{made: sub.made} }

// capture sets sub.Known to k, the Memory's current knowledge of the event. But if an
// attempt in sub.Known may have stored the event, and the Memory may have forgotten the
// attempt, sub.Known stays unchanged. The parameter horizon is the result of
// Memory.freeUntil.
func (sub *Submission) capture(horizon Instant, k Known) {
	was := sub.Known
	switch {
	case was.State != InDoubt && was.State != Stored:
	case k.State != Unknown && k.Since == was.Since:
	case was.State == Stored && k.State != Stored:
		return
	case horizon >= was.keptUntil():
		// The record of the attempts in sub.Known may have expired. A missing record
		// therefore does not prove that SQS refused the attempts. Keep sub.Known.
		return
	}
	sub.Known = k
}

// captureCollision updates sub.collision. The parameter own is the event's record, and
// first is the record under its dedupe key, maybe of another message.
func (sub *Submission) captureCollision(now, horizon Instant, ev *Event, own, first *record) {
	switch other := &sub.collision.Known; {
	case !own.exists && first.exists:
		// Another message has the dedupe key.
		sub.collision = Judgement{ev.is.collision(first.value.fingerprint), first.known(now)}
	case own.exists, other.State != InDoubt && other.State != Stored, horizon < other.keptUntil():
		// There is no collision any more. In the third condition, the record of the other
		// message is missing although it cannot have expired yet: SQS refused that message.
		sub.collision = Judgement{}
	}
}

// isLate reports whether it is too late to start an attempt now: SQS may have forgotten
// the event before the attempt arrives.
func (k *Known) isLate(now Instant) bool {
	return (k.State == InDoubt || k.State == Stored) && now > k.ResendBefore()
}

// arrivesBy returns the latest instant at which the request of the current attempt can
// reach SQS: normally window.Request after the attempt's start, but not before now.
func (sub *Submission) arrivesBy(now Instant) Instant { return max(now, sub.began.Add(window.Request)) }

// earliestStart returns the start of the first attempt by which SQS may have stored a second
// copy of the event.
func (sub *Submission) earliestStart() Instant {
	if sub.counted {
		return sub.recordStart
	}
	// The event had been stored before this attempt. The new copy therefore comes from an
	// attempt of this submission.
	return sub.firstAttempt
}
