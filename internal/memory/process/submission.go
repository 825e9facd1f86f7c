package process

import "github.com/kansas-frontier-matrix/sqsfifo/internal/window"

// Submission keeps one submission's state between attempts. The zero value is ready for use;
// call Refresh at the start of the submission.
type Submission struct {
	// Known is the latest captured knowledge of the event, updated by Refresh, Admit,
	// Judge, Record and Conclude. A doubt stays in Known after the memory has forgotten
	// the event.
	Known Known

	// collision is the last collision of the event with another message. It stays after
	// the memory has dropped the other message's record: a submission that was made while
	// SQS remembered the other message still collides with it.
	collision Judgement

	made         Instant  // instant of the first Refresh; zero before
	firstAttempt Instant  // start of the first attempt; zero before
	groupHighest sequence // highest sequence number of the group before the first attempt
	priorID      summary  // hash of the message ID that was known before the first attempt

	// State of the current attempt; began is zero without an attempt.
	began       Instant
	recordStart Instant // start of the doubt when the attempt was admitted: field from of the record
	storedID    summary // message ID hash if the event was already stored, else zero
	recordEnd   Instant // end of the doubt before the attempt: field to of the record
	counted     bool    // the record counts the attempt

	// Idle: at Conclude, no attempt of the submission was under way.
	Idle bool

	concluded bool // no further attempt may begin
	storedIt  bool // SQS confirmed an attempt, and no duplicate was proved

	// mayFree means that this submission created the record, or that SQS refused its
	// attempt as the last of all attempts. Its Release then frees the record if SQS
	// refused all attempts.
	mayFree bool
}

// WithOtherMessage returns a new ticket of the same submission, for use with another message. The
// submission must not have begun an attempt.
func (sub *Submission) WithOtherMessage() Submission { return Submission{made: sub.made} }

// capture sets Known in the ticket to k, the current knowledge of the event. If k belongs
// to a later deduplication interval than Known, the ticket keeps Known. The parameter
// horizon is the result of Memory.freeUntil.
func (sub *Submission) capture(horizon Instant, k Known) {
	was := sub.Known
	switch {
	case was.State != InDoubt && was.State != Stored:
	case k.State != Unknown && k.Since == was.Since:
	case was.State == Stored && k.State != Stored:
		return
	case horizon >= was.keptUntil():
		// By this time the memory may have freed the record, so a state k without doubt
		// proves nothing, and Known keeps the doubt. Before this time, only an answer of
		// SQS could have ended the doubt.
		return
	}
	sub.Known = k
}

// captureCollision updates the collision in the ticket. If the event collides with
// another message now, it stores this collision. If SQS has refused the other message
// since, it removes the collision.
func (sub *Submission) captureCollision(now, horizon Instant, ev *Event, own, first *record) {
	switch other := &sub.collision.Known; {
	case !own.exists && first.exists:
		sub.collision = Judgement{ev.is.collision(first.value.fingerprint), first.known(now)}
	case own.exists, other.State != InDoubt && other.State != Stored, horizon < other.keptUntil():
		sub.collision = Judgement{} // SQS refused the other message, or took this event
	}
}

// isLate reports whether an attempt started now might arrive after SQS has forgotten the
// event.
func (k *Known) isLate(now Instant) bool {
	return (k.State == InDoubt || k.State == Stored) && now > k.ResendBefore()
}

// arrivesBy returns the latest instant at which an attempt may arrive at SQS, if the
// attempt ends now without proof. A request may arrive long after the client has stopped
// waiting for it.
func (sub *Submission) arrivesBy(now Instant) Instant { return max(now, sub.began.Add(window.Request)) }

// firstCounted returns the start of the first attempt of the submission that SQS may have
// stored.
func (sub *Submission) firstCounted() Instant {
	if sub.counted {
		return sub.recordStart
	}
	return sub.firstAttempt
}
