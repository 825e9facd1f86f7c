package process

import "github.com/kansas-frontier-matrix/sqsfifo/internal/window"

// Ticket keeps one submission's state between attempts. The zero value is ready for use;
// call Refresh at the start of the submission.
type Ticket struct {
	// Known is the latest captured knowledge of the event, updated by Refresh, Admit,
	// Judge, Record and Conclude. A doubt stays in Known after the memory has forgotten
	// the event.
	Known Known

	// collision is the last captured collision. It stays after the memory has dropped the
	// other message's record, because a submission that was made inside an interval is
	// judged by this interval.
	collision Judgement

	made      Instant  // the first Refresh; zero before
	first     Instant  // start of the first attempt; zero before
	watermark sequence // of the group, before the first attempt
	prior     answer   // message ID hash known before the first attempt

	// State of the current attempt; began is zero without an attempt.
	began   Instant
	since   Instant // record's from: the interval of the admission
	stored  answer  // record's answer if stored, else zero
	to      Instant // record's to before the attempt
	counted bool    // the record counts the attempt

	// Idle: at Conclude, no attempt of the submission was under way.
	Idle bool

	concluded bool // no further attempt may begin
	storedIt  bool // as far as known, this submission stored the event

	// opened: Release of this submission frees the record if the event is Clear.
	opened bool
}

// Again returns the ticket of the same submission for another message. No attempt may have
// begun.
func (t *Ticket) Again() Ticket { return Ticket{made: t.made} }

// capture replaces the ticket's knowledge by k, the current knowledge. If k belongs to a
// later interval than the ticket's knowledge, capture changes nothing. horizon is the result
// of Memory.freeUntil.
func (t *Ticket) capture(horizon Instant, k Known) {
	was := t.Known
	switch {
	case was.State != InDoubt && was.State != Stored:
	case k.State != Unknown && k.Since == was.Since:
	case was.State == Stored && k.State != Stored:
		return
	case horizon >= was.keptUntil():
		// The memory may have forgotten the event, so a current state without a doubt
		// proves nothing. Earlier, only proof ends a doubt in the memory.
		return
	}
	t.Known = k
}

// captureCollision adopts the event's current collision and drops a disproved one.
func (t *Ticket) captureCollision(now, horizon Instant, ev *Event, own, first *record) {
	switch other := &t.collision.Known; {
	case !own.held && first.held:
		t.collision = Judgement{ev.is.collision(first.value.fingerprint), first.known(now)}
	case own.held, other.State != InDoubt && other.State != Stored, horizon < other.keptUntil():
		t.collision = Judgement{} // otherwise forgotten, not refused
	}
}

// isLate reports whether an attempt started now might arrive after SQS has forgotten the
// event.
func (k *Known) isLate(now Instant) bool {
	return (k.State == InDoubt || k.State == Stored) && now > k.ResendBefore()
}

// arrivesBy returns the latest arrival at SQS of an attempt that ends now without proof:
// the client may have given up long before.
func (t *Ticket) arrivesBy(now Instant) Instant { return max(now, t.began.Add(window.Request)) }

// firstCounted returns the start of the submission's first attempt possibly stored by
// SQS.
func (t *Ticket) firstCounted() Instant {
	if t.counted {
		return t.since
	}
	return t.first
}
