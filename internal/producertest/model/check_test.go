package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
)

// flush checks that earlier submissions have their outcomes when Flush returns.
func (m *modelRun) flush(ctx context.Context, producer int) {
	m.mu.Lock()
	m.clock++
	at := m.clock
	m.mu.Unlock()
	if m.producersOf(producer)[0].Flush(ctx) != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.subs {
		if s.producer == producer && s.returnedAt > 0 && s.returnedAt < at && s.outcomes == 0 {
			m.fail(s, "no outcome after Flush")
		}
	}
}

// checkClosed checks that all submitted events have their outcomes when Close returns.
func (m *modelRun) checkClosed(producer int, ctx context.Context, err error) {
	// Close ends the calls that block, for example for room in the buffer. Wait until these
	// calls have returned, so that the loop below checks their submissions too.
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err != nil && ctx.Err() == nil:
		m.fail(nil, "Close: %v", err)
	case err != nil && m.slow:
		return // Close gave up; some outcomes may still wait for blocked callbacks, so do not check
	}
	for _, s := range m.subs {
		if s.producer == producer && s.returnedAt > 0 && s.outcomes == 0 {
			m.fail(s, "no outcome after Close, which returned %v", err)
		}
	}
	if err == nil {
		m.closed = append(m.closed, producer)
	}
}

// checkEmpty checks that producers whose Close has returned nil have nothing in memory. All
// calls have returned: a call that Close has ended frees its room when it returns.
func (m *modelRun) checkEmpty() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, producer := range m.closed {
		if left := producertest.Leftovers(m.producers[producer][0]); left != "" {
			m.fail(nil, "after Close there are %s", left)
		}
	}
}

// check compares the messages stored by SQS with the producers' reports.
func (m *modelRun) check(sum *modelTotals) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.subs {
		// SendBatch may wait for buffer room before it submits an event. So the time of the
		// submission is not the start of SendBatch, but the event's last call of Identify.
		if at, ok := m.identifiedAt.Load(s.id); ok && s.how == "SendBatch" {
			s.made = at.(time.Time)
		}
	}
	bodies := map[string][]*modelAccept{}
	lanes := map[modelLane][]*modelAccept{}
	for _, a := range m.accepts {
		lane := modelLane{a.sub.producer, a.sub.e.Group}
		bodies[a.sub.body] = append(bodies[a.sub.body], a)
		lanes[lane] = append(lanes[lane], a)
	}
	requests := map[string][]*modelRequest{}
	for _, r := range m.requests {
		sum.attempts.Add(int64(len(r.subs)))
		for _, s := range r.subs {
			requests[s.body] = append(requests[s.body], r)
		}
	}
	messages := m.q.Messages()
	if len(messages) != len(m.accepts) {
		m.fail(nil, "%d messages in the queue, %d accepted", len(messages), len(m.accepts))
	}
	for _, msg := range messages {
		if a := m.stored[msg.MessageID]; a == nil || a.number != msg.SequenceNumber || a.sub.body != msg.Body || a.sub.e.Group != msg.GroupID || !a.at.Equal(msg.AcceptedAt) {
			m.fail(nil, "the queue has what was not accepted: %v", msg)
		}
	}
	for _, as := range bodies {
		m.checkTwice(as)
		sum.again.Add(int64(len(as) - 1))
	}
	earlier := map[string][]*modelSub{}
	for _, s := range m.subs {
		if s.outcomes != 1 {
			m.fail(s, "%d outcomes in the end", s.outcomes)
		}
		m.checkTime(s)
		m.checkFate(s, bodies[s.body], requests[s.body], earlier[s.body])
		earlier[s.body] = append(earlier[s.body], s)
		switch sqsfifo.FateOf(s.err) {
		case sqsfifo.FateStored:
			sum.receipts.Add(1)
			if s.receipt.Duplicate {
				sum.duplicates.Add(1)
			}
		case sqsfifo.FateNotStored:
			sum.notStored.Add(1)
		case sqsfifo.FateInDoubt:
			sum.inDoubt.Add(1)
		}
	}
	for _, as := range lanes {
		m.checkOrder(as)
	}
	sum.submissions.Add(int64(len(m.subs)))
	sum.accepted.Add(int64(len(m.accepts)))
}

// checkTime checks that an outcome comes RetryFor after the later of the submission and the
// last answer about an event of the group. A request, a minute until the dispatcher ends
// events that wait for a request, and a few seconds may be added. The first attempt may be
// later if no attempt of the group failed before it.
func (m *modelRun) checkTime(s *modelSub) {
	if m.delivery.BufferEvents != 0 || m.crowded || m.slow || m.on.suspends || m.on.deaf > 0 || s.outcomes == 0 {
		return // the time of Submit or of the outcome is not known well enough
	}
	since, first, failed := s.made, time.Time{}, time.Time{}
	for _, r := range m.requests {
		if r.subs[0].producer != s.producer || !slices.ContainsFunc(r.subs, func(o *modelSub) bool { return o.e.Group == s.e.Group }) {
			continue
		}
		if first.IsZero() && slices.Contains(r.subs, s) {
			first = r.start
		}
		_, fails := map[string]bool{"throttled": true, "refused": true, "failing": true, "lost": true}[r.plan.kind]
		if fails = fails || !r.answered; !fails && r.end.After(since) && r.end.Before(s.reported) {
			since = r.end
		}
		if fails && (first.IsZero() || r.start.Before(first)) {
			failed = r.end
		}
	}
	limit := since.Add(cmp.Or(m.delivery.RetryFor, 270*time.Second) + time.Minute)
	if !failed.After(since) && first.After(limit) {
		limit = first
	}
	if s.reported.Sub(limit) > 30*time.Second {
		m.fail(s, "its outcome took %v", s.reported.Sub(since))
	}
}

const (
	// modelInterval is SQS's deduplication interval.
	modelInterval = 5 * time.Minute

	// modelMemory is the time for which a producer remembers a message after the answer
	// of SQS.
	modelMemory = modelInterval + 5*time.Second
)

// checkTwice checks that a producer stores no event twice within the interval. Only a
// submission made at least one interval after SQS accepted the event may store it again.
func (m *modelRun) checkTwice(as []*modelAccept) {
	last := map[int]*modelAccept{}
	for _, a := range as {
		p := a.sub.producer
		if l := last[p]; l != nil && a.sub.made.Before(l.at.Add(modelInterval)) && !m.isUnnoticed(l, as, a.sub.made) {
			m.fail(a.sub, "accepted twice, %v apart, by submission %d and by %d, which was made %v after the first",
				a.at.Sub(l.at), l.sub.id, a.sub.id, a.sub.made.Sub(l.at))
		}
		last[p] = a
	}
}

// concerns reports whether the message `a` proves that the event of submission s is stored.
// Either s sent the message, or an earlier submission to the same producer did. In the
// second case, the request must have started before the report of s, and SQS must still
// have remembered the message when s was made.
func (a *modelAccept) concerns(s *modelSub) bool {
	if a.sub == s {
		return true
	}
	return a.sub.producer == s.producer && a.sub.precedes(s) && a.request.startedAt < s.reportedAt && s.made.Before(a.at.Add(modelInterval))
}

// isUnnoticed reports whether the producer could not know of the message `a` by the time
// `when`. The documentation of package internal/memory/process explains this under Limits.
func (m *modelRun) isUnnoticed(a *modelAccept, as []*modelAccept, when time.Time) bool {
	producer := a.sub.producer
	if slices.ContainsFunc(m.subs, func(s *modelSub) bool {
		return s.producer == producer && s.receipt.MessageID == a.id && !s.reported.After(when)
	}) {
		return false
	}
	return slices.ContainsFunc(as, func(b *modelAccept) bool {
		age := a.at.Sub(b.at)
		return b.sub.producer != producer && age >= modelInterval && age < 2*modelInterval &&
			slices.ContainsFunc(b.again, func(r *modelRequest) bool { return r.producer == producer && r.answered && r.start.Before(a.at) })
	})
}

// checkFate checks that the outcome of submission s agrees with SQS. For example, an
// event reported as not stored must not be stored.
func (m *modelRun) checkFate(s *modelSub, as []*modelAccept, rs []*modelRequest, earlier []*modelSub) {
	var conflict *sqsfifo.ConflictError
	var violation *sqsfifo.ViolationError
	var doubt *sqsfifo.InDoubtError
	switch {
	case s.err == nil:
		m.checkReceipt(s, as, rs, earlier)
	case errors.As(s.err, &conflict), errors.As(s.err, &violation):
		// Accept these errors: whether an error is right depends on other events, which
		// checkFate does not know.
	case errors.As(s.err, &doubt):
		m.checkDoubt(s, doubt, as, rs, earlier)
	case sqsfifo.FateOf(s.err) == sqsfifo.FateNotStored:
		for _, a := range as {
			// A blocked callback or SendBatch may delay the report. Meanwhile another
			// submission may store the event.
			afterDecision := (m.slow || s.call > 0) && !a.at.Before(s.made)
			if a.sub.e.Route != s.e.Route || !a.concerns(s) || afterDecision && a.sub != s || a.sub != s && m.isUnnoticed(a, as, s.reported) {
				continue
			}
			m.fail(s, "not stored, says submission %d, but SQS accepted it at %s by submission %d", s.id, m.time(a.at), a.sub.id)
		}
	default:
		m.fail(s, "an error without a fate: %v", s.err)
	}
	if m.strict && (s.receipt.Overtaken || errors.Is(s.err, sqsfifo.ErrOvertaken)) {
		m.fail(s, "overtaken with Strict")
	}
}

func (m *modelRun) checkReceipt(s *modelSub, as []*modelAccept, rs []*modelRequest, earlier []*modelSub) {
	r := s.receipt
	if r.MessageID == "" {
		own, others := false, false
		for _, a := range as {
			own = own || a.sub == s
			others = others || a.sub != s && !a.at.After(s.reported) && s.made.Before(a.request.end.Add(modelMemory))
			knew := a.sub.producer == s.producer || slices.ContainsFunc(a.again, func(r *modelRequest) bool { return r.producer == s.producer })
			// If the producer knew the message, a request that left before SQS forgot the
			// message needs no clear answer. The event is stored, whether SQS dropped this
			// request as a duplicate, stored the event again, or never got the request.
			for _, r := range rs {
				suppressed := knew && !r.provesUnstored && r.start.Before(a.at.Add(modelInterval))
				others = others || suppressed && r.producer == s.producer && r.startedAt < s.reportedAt && s.made.Before(r.end.Add(modelMemory))
			}
		}
		switch {
		case !r.Duplicate:
			m.fail(s, "a receipt without a message ID that is not a duplicate")
		case !own && !others:
			m.fail(s, "a receipt and no message")
		case !others:
			m.fail(s, "a false duplicate: submission %d itself stored it", s.id)
		}
		return
	}
	a := m.stored[r.MessageID]
	switch {
	case a == nil || a.sub.body != s.body || a.number != r.SequenceNumber || a.at.After(s.reported):
		m.fail(s, "a receipt of something else than the message")
		return
	case r.Duplicate && a.sub == s:
		m.fail(s, "a false duplicate: submission %d itself stored it", s.id)
	case !r.Duplicate && a.sub != s:
		for _, e := range earlier {
			if e.producer == s.producer && e.err == nil && e.outcomes > 0 && e.reportedAt < s.madeAt && e.receipt.MessageID == r.MessageID {
				m.fail(s, "a duplicate that is not named, although submission %d had the receipt of it", e.id)
				return
			}
		}
	}
}

// checkDoubt checks the times of an InDoubtError. The time doubt.Since must be the start
// of a request that may have stored the event. A resend before doubt.ResendBefore must
// reach SQS within the deduplication interval.
func (m *modelRun) checkDoubt(s *modelSub, doubt *sqsfifo.InDoubtError, as []*modelAccept, rs []*modelRequest, earlier []*modelSub) {
	reason := false
	for _, r := range rs {
		// A request cannot be the reason for the doubt if its answer proved "not stored"
		// before the producer decided the outcome. The test knows only the time of the
		// report. With slow callbacks or SendBatch, an answer before the report may still
		// have come after the decision, so do not rule the request out.
		proven := r.provesUnstored && r.end.Before(s.reported) && !m.slow && s.call == 0
		reason = reason || r.producer == s.producer && !proven && !r.start.After(s.reported) && m.on.holdsAtTrueTime(doubt.Since, s.made, s.reported, r.start.Equal)
	}
	if !reason {
		m.fail(s, "in doubt since %s, when no request left that could be in doubt", m.time(doubt.Since))
	}
	for _, a := range as {
		safe := func(before time.Time) bool { return !before.Add(modelDelivery).After(a.at.Add(modelInterval)) }
		if a.sub.e.Route == s.e.Route && a.concerns(s) && !m.on.holdsAtTrueTime(doubt.ResendBefore, s.made, s.reported, safe) && (a.sub == s || !m.isUnnoticed(a, as, s.made)) {
			m.fail(s, "a resend before %s is not safe: accepted at %s", m.time(doubt.ResendBefore), m.time(a.at))
		}
	}
	for _, e := range earlier {
		if e.producer != s.producer || e.err != nil || e.reportedAt >= s.madeAt {
			continue
		}
		if a := m.stored[e.receipt.MessageID]; a != nil && s.reported.Before(a.at.Add(modelInterval)) {
			m.fail(s, "in doubt, although submission %d had the receipt of it", e.id)
		}
	}
}

// checkOrder checks that a group's events are stored in submission order. The switch
// lists the permitted exceptions.
func (m *modelRun) checkOrder(as []*modelAccept) {
	for i, late := range as {
		for _, first := range as[:i] {
			earlier, later := late.sub, first.sub
			if !earlier.precedes(later) {
				continue
			}
			switch {
			case earlier.err != nil && late.request.endedAt < first.request.startedAt && (m.resumed || m.delivery.OnGroupFailure == sqsfifo.GroupFailureSkip):
				// A request of the failed event reached SQS after the group had gone on.
				continue
			case modelInDoubt(earlier) && (later.err != nil || later.reportedAt > earlier.reportedAt):
				// The producer had reported the doubt before any receipt for the later event.
				// So the caller knew that the earlier event might be stored after the later one.
				continue
			case modelInDoubt(earlier) && m.slow && late.request.endedAt < first.request.startedAt:
				// The earlier event was in doubt when the later event was sent. A slow
				// callback delayed its report.
				continue
			case earlier.receipt.MessageID != "" && earlier.receipt.MessageID != late.id:
				// The earlier event's receipt names a message of another producer, which SQS
				// stored first. The message `late` is a second copy, stored after SQS forgot
				// the first. Its order is not guaranteed.
				continue
			case m.on.setsClock && earlier.err == nil && earlier.receipt.MessageID == "":
				// This is the previous case after a change of the wall clock: the receipt
				// then has no message ID.
				continue
			case !m.strict && (earlier.receipt.Overtaken || errors.Is(earlier.err, sqsfifo.ErrOvertaken)):
				continue
			}
			m.fail(earlier, "out of order: submission %d was stored before %d", later.id, earlier.id)
			m.wrong[len(m.wrong)-1].other = later
			return
		}
	}
}

func modelInDoubt(s *modelSub) bool { return sqsfifo.FateOf(s.err) == sqsfifo.FateInDoubt }

// modelNote is one line of the history that the method report prints for an event.
type modelNote struct {
	at      time.Time
	sub     *modelSub
	request *modelRequest
	what    string
}

// note adds a line to the history of a submission. The caller holds the lock.
func (w *modelWorld) note(s *modelSub, r *modelRequest, what string) {
	w.notes = append(w.notes, modelNote{w.on.now(), s, r, what})
}

// modelViolation is a broken guarantee, with the submission or the two submissions that
// show it.
type modelViolation struct {
	text       string
	sub, other *modelSub
}

// fail records a violation. The caller holds the lock.
func (w *modelWorld) fail(s *modelSub, format string, args ...any) {
	w.wrong = append(w.wrong, modelViolation{text: fmt.Sprintf(format, args...), sub: s})
}

// time formats t as seconds since the start of the virtual time.
func (w *modelWorld) time(t time.Time) string {
	return fmt.Sprintf("%.3f s", t.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).Seconds())
}

// report prints the violations with the histories of their events.
func (m *modelRun) report() {
	if len(m.wrong) == 0 {
		return
	}
	m.t.Errorf("%d violations; again with: go test -run '^TestModel$' ./internal/producertest/model -model.seed %d", len(m.wrong), m.seed)
	m.t.Logf("%+v, slow callbacks %v, resumed %v, faults %v", m.delivery, m.slow, m.resumed, m.odds)
	m.t.Log(strings.Join(m.on.history, "\n"))
	for _, v := range m.wrong[:min(len(m.wrong), 3)] {
		var b strings.Builder
		fmt.Fprintln(&b, v.text)
		for _, n := range m.notes {
			if !n.sub.isEventOf(v.sub) && !n.sub.isEventOf(v.other) {
				continue
			}
			fmt.Fprintf(&b, "  %12s  submission %d", m.time(n.at), n.sub.id)
			if r := n.request; r != nil {
				kind := cmp.Or(r.plan.kind, "fair")
				fmt.Fprintf(&b, ", request %d of %d entries (%s; arrives %v after %v)", r.n, len(r.subs), kind, r.plan.arrives, r.plan.out)
			} else {
				fmt.Fprintf(&b, " of value %d %s", n.sub.e.Value, n.sub.e.Route)
			}
			fmt.Fprintf(&b, ": %s\n", n.what)
		}
		m.t.Log(b.String())
	}
}

// isEventOf reports whether two submissions of a producer have equal dedupe keys.
func (s *modelSub) isEventOf(o *modelSub) bool {
	return o != nil && s.producer == o.producer && s.e.Key == o.e.Key
}
