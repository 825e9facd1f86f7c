package process

import "github.com/kansas-frontier-matrix/sqsfifo/internal/window"

// Submission keeps the state of one submission between its attempts. The zero value is
// ready for use; call Refresh at the start of the submission.
type Submission struct {
	// Known is the submission's copy of the memory's knowledge of the event, updated by
	// Refresh, Admit, Judge, Record and Conclude. If an attempt may have stored the event,
	// Known stays InDoubt or Stored after the memory has forgotten the event.
	Known Known

	// collision describes the event's collision with another message under the same
	// dedupe key. If SQS remembered that message when the submission was made, collision
	// stays after the memory has freed the message's record.
	collision Judgement

	made         Instant  // instant of the first Refresh; zero before
	firstAttempt Instant  // start of the first attempt; zero before
	groupHighest sequence // highest known sequence number of the message group before the first attempt
	// priorID is the hash of SQS's message ID if the event was stored before the first
	// attempt. With AdmitAnyway, it may be the ID of the other event with this dedupe
	// key.
	priorID summary

	// The following fields describe the current attempt and the record at its start.
	// began is zero if no attempt is under way.
	began       Instant
	recordStart Instant // record.firstStart just after the attempt's start
	storedID    summary // hash of the message ID if the event was already stored; else zero
	recordEnd   Instant // record.lastEnd if the event was in doubt and no other attempt was under way; else zero
	counted     bool    // record.value.summary counts the attempt as under way

	// Idle reports that no attempt of the submission was under way when Conclude was
	// called.
	Idle bool

	// Retained reports that the last judgement before Conclude was of the kind Retained.
	Retained bool

	concluded bool // Conclude was called: no further attempt may begin
	storedIt  bool // SQS confirmed an attempt of this submission, without proof of a duplicate

	// mayFree permits Release to free the record if SQS refused all attempts. The methods
	// record.begin and record.endIncluded set it.
	mayFree bool
}

// WithOtherMessage returns the state of the same submission for use with another message.
// The submission must not have begun an attempt.
func (sub *Submission) WithOtherMessage() Submission { return Submission{made: sub.made} }

// capture copies the memory's knowledge k to sub.Known. But sub.Known stays unchanged if
// it has attempts that may have stored the event, and the memory may have forgotten these
// attempts. horizon is the result of Memory.freeUntil.
func (sub *Submission) capture(horizon Instant, k Known) {
	was := sub.Known
	switch {
	case was.State != InDoubt && was.State != Stored:
	case k.State != Unknown && k.Since == was.Since:
	case was.State == Stored && k.State != Stored:
		return
	case horizon >= was.keptUntil():
		// The memory may have freed the record of the attempts in sub.Known. A missing
		// record therefore does not prove that SQS refused the attempts.
		return
	}
	sub.Known = k
}

// captureCollision sets sub.collision if the event has no record and another message has
// its dedupe key. It clears sub.collision if the event has a record, or if SQS cannot
// have the other message.
func (sub *Submission) captureCollision(now, horizon Instant, ev *Event, own, first *record) {
	switch other := &sub.collision.Known; {
	case !own.exists && first.exists:
		sub.collision = Judgement{ev.is.collision(first.value.fingerprint), first.known(now)}
	case own.exists, other.State != InDoubt && other.State != Stored, horizon < other.keptUntil():
		sub.collision = Judgement{}
	}
}

// isLate reports whether it is too late to start an attempt now: SQS may have forgotten
// the event before the attempt arrives.
func (k *Known) isLate(now Instant) bool {
	return (k.State == InDoubt || k.State == Stored) && now > k.ResendBefore()
}

// arrivesBy returns the latest instant at which the current attempt's request may reach
// SQS, if the client gives up now. A request may arrive up to window.Request after the
// attempt's start.
func (sub *Submission) arrivesBy(now Instant) Instant { return max(now, sub.began.Add(window.Request)) }

// firstCounted returns the record's new firstStart after SQS has stored a second copy of
// the event: recordStart if the record counted the current attempt as under way,
// otherwise firstAttempt.
func (sub *Submission) firstCounted() Instant {
	if sub.counted {
		return sub.recordStart
	}
	return sub.firstAttempt
}
