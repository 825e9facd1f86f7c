package dedup

// Ticket is what one submission of an event keeps between its attempts. The zero
// value is ready for use; call Refresh when the submission is made.
type Ticket struct {
	// Known is what was known of the event when the submission was made, or since: it
	// follows Refresh, Admit and Settle. A doubt stays in it after the memory has
	// forgotten the event.
	Known Known

	// collision is what the event collided with when the submission was made, or
	// since. It stays after the memory has forgotten the other message: what is
	// submitted inside the interval is judged inside it.
	collision Verdict

	first     Instant  // start of the submission's first attempt, zero before
	watermark sequence // of the group, before the first attempt
	prior     answer   // hash of the message ID that was known before the first attempt

	// Of the attempt under way; began is zero if there is none.
	began   Instant
	since   Instant // the record's from
	to      Instant // the record's to, before the attempt
	counted bool    // the record counts the attempt

	concluded bool // no attempt may begin
	storedIt  bool // an attempt of the submission stored the event, as far as is known

	// opened: this submission made the record what it is, and frees it.
	opened bool
}

// capture takes over what is known now, unless that is of a later interval than what
// the ticket knows.
func (t *Ticket) capture(now Instant, k Known) {
	was := t.Known
	switch {
	case was.State != InDoubt && was.State != Stored:
	case k.State != Unknown && k.Since == was.Since:
	case was.State == Stored && k.State != Stored:
		return
	case now.Sub(was.Since) >= memorySpan:
		// The memory may have forgotten the event, so that what it knows now disproves
		// nothing. Earlier than that, a doubt disappears by proof only.
		return
	}
	t.Known = k
}

// captureCollision takes over with which message the event collides now.
func (t *Ticket) captureCollision(now Instant, ev *Event, own, first *record) {
	switch other := &t.collision.Known; {
	case !own.held && first.held:
		t.collision = Verdict{ev.is.collision(first.value.fingerprint), first.known(now)}
	case own.held, other.State != InDoubt && other.State != Stored, now.Sub(other.Since) < memorySpan:
		t.collision = Verdict{} // else the other message was forgotten, and not refused
	}
}

// isLate reports whether an attempt that starts now might arrive after SQS has
// forgotten the event.
func (k *Known) isLate(now Instant) bool {
	return (k.State == InDoubt || k.State == Stored) && now > k.ResendBefore()
}

// arrivesBy returns until when an attempt without proof, which ends now, may still
// reach SQS: the client may have given up long before.
func (t *Ticket) arrivesBy(now Instant) Instant { return max(now, t.began.Add(AttemptTimeout)) }

// firstCounted returns the start of the first attempt of the submission that may be the
// one that SQS stored.
func (t *Ticket) firstCounted() Instant {
	if t.counted {
		return t.since
	}
	return t.first
}
