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
	// dedupe key. It outlives the memory's record of that message: a submission made
	// while SQS remembered the message still collides with it.
	collision Judgement

	made         Instant  // instant of the first Refresh; zero before
	firstAttempt Instant  // start of the first attempt; zero before
	groupHighest sequence // highest known sequence number of the message group before the first attempt
	priorID      summary  // hash of the message ID if the event was already stored before the first attempt

	// The following fields describe the current attempt; began is zero if no attempt is
	// under way.
	began       Instant
	recordStart Instant // record.firstStart when the attempt began
	storedID    summary // hash of the message ID if the event was already stored when the attempt began, else zero
	recordEnd   Instant // record.lastEnd when the attempt began, if only ended attempts were in doubt; else zero
	counted     bool    // at its beginning, the attempt was added to the number of attempts under way in the record

	// Idle reports that no attempt of the submission was under way when Conclude was
	// called.
	Idle bool

	concluded bool // no further attempt may begin
	storedIt  bool // SQS confirmed an attempt, and nothing proved that the event was stored before

	// mayFree permits Release of this submission to free the record after SQS's refusal
	// of all attempts. It is set at the start of this submission's attempt if no other
	// attempt may have stored the event, and at the refusal of its attempt if no other
	// attempt is under way or in doubt.
	mayFree bool
}

// WithOtherMessage returns the state of the same submission for use with another message.
// The submission must not have begun an attempt.
func (sub *Submission) WithOtherMessage() Submission { return Submission{made: sub.made} }

// capture sets sub.Known to k, the memory's current knowledge of the event, if k continues
// the knowledge in sub.Known. It keeps the old Known if the memory may have forgotten the
// attempts to which Known refers: k then knows nothing of them, or only of later attempts.
// horizon is the result of Memory.freeUntil.
func (sub *Submission) capture(horizon Instant, k Known) {
	was := sub.Known
	switch {
	case was.State != InDoubt && was.State != Stored:
	case k.State != Unknown && k.Since == was.Since:
	case was.State == Stored && k.State != Stored:
		return
	case horizon >= was.keptUntil():
		// The memory may already have freed the record of earlier attempts. Their absence
		// from k then proves nothing, so Known must stay. Before this instant, only an
		// answer of SQS could remove the record.
		return
	}
	sub.Known = k
}

// captureCollision sets sub.collision if the memory has another message under the event's
// dedupe key and no record of the event itself. It removes the collision after SQS's
// refusal of the other message, or if the event has its own record.
func (sub *Submission) captureCollision(now, horizon Instant, ev *Event, own, first *record) {
	switch other := &sub.collision.Known; {
	case !own.exists && first.exists:
		sub.collision = Judgement{ev.is.collision(first.value.fingerprint), first.known(now)}
	case own.exists, other.State != InDoubt && other.State != Stored, horizon < other.keptUntil():
		// The key is free because SQS refused the other message, or this event has a
		// record.
		sub.collision = Judgement{}
	}
}

// isLate reports whether SQS may have forgotten the event when an attempt arrives that
// starts now.
func (k *Known) isLate(now Instant) bool {
	return (k.State == InDoubt || k.State == Stored) && now > k.ResendBefore()
}

// arrivesBy returns the latest arrival at SQS of the current attempt's request if the
// client gives up now. A request may arrive up to window.Request after the attempt's
// start, long after the client has given up.
func (sub *Submission) arrivesBy(now Instant) Instant { return max(now, sub.began.Add(window.Request)) }

// firstCounted returns the start of the attempt to which a new copy of the event in SQS
// counts: the start of the first attempt in the record, if the record counts the current
// attempt, and otherwise the start of the submission's first attempt.
func (sub *Submission) firstCounted() Instant {
	if sub.counted {
		return sub.recordStart
	}
	return sub.firstAttempt
}
