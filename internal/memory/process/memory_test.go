package process_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/process"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

const span = window.Interval + window.Slack

// rig combines a Memory and its simulated clocks.
type rig struct {
	*process.Memory
	t      *testing.T
	clocks *process.Clocks
}

func newRig(t *testing.T, o process.Options) *rig {
	c := &process.Clocks{}
	return &rig{process.NewAt(o, c), t, c}
}

func (r *rig) pass(d time.Duration) process.Instant {
	r.clocks.Awake += d
	return r.Now()
}

// until moves the clocks forward until r.Now() returns i.
func (r *rig) until(i process.Instant) {
	r.t.Helper()
	require.GreaterOrEqual(r.t, i.Sub(r.Now()), time.Duration(0))
	r.pass(i.Sub(r.Now()))
}

// submission combines the Event and the Submission of one event. Its methods call the
// Memory in the embedded rig.
type submission struct {
	*rig
	ev  process.Event
	sub process.Submission
}

func (r *rig) submit(key, group, body string) *submission {
	return r.submitWith(key, group, body, "")
}

// submitWith starts a submission. The event's payload is the part of the body before "/".
// Two bodies that differ only after "/" therefore have the same payload. For the second of
// two such events, Admit returns Drift.
func (r *rig) submitWith(key, group, body, attributes string) *submission {
	var sum [32]byte
	copy(sum[:], attributes)
	payload, _, _ := strings.Cut(body, "/")
	s := &submission{rig: r, ev: r.Event(key, group, body, payload, sum)}
	s.Refresh(r.Now(), &s.ev, &s.sub)
	return s
}

func (s *submission) admit() process.Judgement { return s.Admit(s.Now(), &s.ev, &s.sub, false) }

func (s *submission) anyway() process.Judgement { return s.Admit(s.Now(), &s.ev, &s.sub, true) }

func (s *submission) look() process.Known { return s.Look(s.Now(), &s.ev) }

func (s *submission) release() { s.Release(s.Now(), &s.ev, &s.sub) }

func (s *submission) refresh() { s.Refresh(s.Now(), &s.ev, &s.sub) }

func (s *submission) record(r process.Result) bool { return s.Record(s.Now(), &s.ev, &s.sub, r) }

func (s *submission) goes() process.Judgement {
	s.t.Helper()
	v := s.admit()
	require.Equal(s.t, kindGo, kindOf(v))
	return v
}

func stored(id string, sequence ...string) process.Result {
	return process.Result{Fate: attempt.FateStored, MessageID: id, Sequence: strings.Join(sequence, "")}
}

var (
	lost         = process.Result{Fate: attempt.FateInDoubt}
	refused      = process.Result{Fate: attempt.FateNotStored}
	altered      = process.Result{Fate: attempt.FateAltered, Drops: true}
	alteredOther = process.Result{Fate: attempt.FateAltered}
)

// try makes one attempt that takes one second and ends with r.
func (s *submission) try(r process.Result) (duplicate bool) {
	s.t.Helper()
	s.goes()
	s.pass(time.Second)
	return s.record(r)
}

func (s *submission) state() verdict.State { return s.look().State }

func TestHorizonLeavesTimeForOneAttempt(t *testing.T) {
	assert.Equal(t, 275*time.Second, window.LastStart)
	assert.Equal(t, window.Interval, window.LastStart+window.Request+window.Slack)
}

func TestStatesOfAnEvent(t *testing.T) {
	r := newRig(t, process.Options{})
	s := r.submit("k", "g", "b")
	assert.Zero(t, s.look())

	t0 := r.pass(time.Second)
	v := s.goes()
	assert.Zero(t, v.Known, "what was known before")
	k := s.look()
	assert.Equal(t, verdict.StateInDoubt, k.State)
	assert.True(t, k.UnderWay)
	assert.Equal(t, t0, k.Since)
	assert.Equal(t, t0.Add(window.LastStart), k.ResendBefore())
	assert.Equal(t, t0.Add(window.Request+span), k.ForgottenAt(), "an estimate")

	r.pass(time.Second)
	s.record(refused)
	assert.Equal(t, verdict.StateClear, s.state())
	assert.Zero(t, s.look().ForgottenAt())

	t1 := r.pass(time.Second)
	s.goes()
	assert.Equal(t, t1, s.look().Since, "the doubt begins with this attempt")
	r.pass(time.Second)
	s.record(lost)
	end := t1.Add(window.Request) // latest instant at which the attempt may arrive at SQS
	k = s.look()
	assert.Equal(t, verdict.StateInDoubt, k.State)
	assert.False(t, k.UnderWay)
	assert.Equal(t, t1, k.Since)
	assert.Equal(t, end.Add(span), k.ForgottenAt())
	assert.Equal(t, k, s.sub.Known)

	r.pass(time.Second)
	s.goes()
	assert.True(t, s.look().UnderWay)
	assert.Equal(t, t1, s.look().Since, "the first ambiguous attempt counts")
	r.pass(time.Second)
	s.record(refused)
	assert.Equal(t, k, s.look(), "a refusal proves nothing about the attempt before it")

	r.pass(time.Second)
	s.goes()
	end = r.pass(time.Second)
	assert.False(t, s.record(stored("m1")))
	k = s.look()
	assert.Equal(t, verdict.StateStored, k.State)
	assert.Equal(t, t1, k.Since)
	assert.Equal(t, end.Add(span), k.ForgottenAt())
	s.release()
	assert.Equal(t, k, s.look())
}

// SQS stored an event, or may have stored it. Another attempt may start until
// Known.ResendBefore, but not one nanosecond later. A submission that begins at
// Known.ForgottenAt or later may send the event. For submissions that began earlier, Admit
// still refuses every attempt.
func TestAttemptsOfOneInterval(t *testing.T) {
	for _, tc := range []struct {
		result process.Result
		late   string
	}{{lost, kindLateInDoubt}, {stored("m1"), kindLateStored}} {
		r := newRig(t, process.Options{})
		s := r.submit("k", "g", "b")
		since := r.Now()
		s.try(tc.result)
		known := s.look()

		r.until(known.ResendBefore())
		assert.Equal(t, since.Add(window.LastStart), r.Now())
		again := r.submit("k", "g", "b")
		assert.Equal(t, known, again.goes().Known)
		again.record(refused)
		assert.Equal(t, known, again.look())

		r.pass(1)
		inside := r.submit("k", "g", "b")
		for _, s := range []*submission{s, again, inside} {
			assert.Equal(t, process.Judgement{Verdict: verdict.Verdict{Kind: verdict.KindLate}, Known: known}, s.admit())
		}
		r.until(known.ForgottenAt() - 1)
		last := r.submit("k", "g", "b")
		assert.Equal(t, tc.late, kindOf(last.admit()))
		r.pass(1)
		assert.Zero(t, s.look(), "SQS has surely forgotten it")
		for _, s := range []*submission{s, again, inside, last} {
			assert.Equal(t, process.Judgement{Verdict: verdict.Verdict{Kind: verdict.KindLate}, Known: known}, s.admit(), "it was submitted inside the interval")
		}
		assert.Zero(t, r.submit("k", "g", "b").goes().Known, "it is submitted after the interval")
		for _, s := range []*submission{s, again, inside, last} {
			assert.Equal(t, process.Judgement{Verdict: verdict.Verdict{Kind: verdict.KindLate}, Known: known}, s.admit(), "another interval changes nothing")
		}
	}
}

func TestReleaseFreesWhatIsClear(t *testing.T) {
	r := newRig(t, process.Options{})
	for _, tc := range []struct {
		result process.Result
		want   verdict.State
	}{{refused, verdict.StateUnknown}, {alteredOther, verdict.StateUnknown}, {lost, verdict.StateInDoubt}, {stored("m"), verdict.StateStored}, {altered, verdict.StateAltered}} {
		s := r.submit("k"+fmt.Sprint(tc.want), "g", "b")
		s.try(tc.result)
		s.release()
		assert.Equal(t, tc.want, s.state())
	}
	never := r.submit("k", "g", "b")
	never.release()
	opened := r.submit("k", "g", "b")
	opened.try(refused)
	never.release()
	assert.Equal(t, verdict.StateClear, opened.state(), "it is another submission's")
	opened.release()
	opened.release()
	require.Zero(t, opened.state())
	other := r.submit("k", "g", "other")
	other.try(refused)
	opened.release()
	assert.Equal(t, verdict.StateClear, other.state())
}

func TestFullMemoryRefuses(t *testing.T) {
	r := newRig(t, process.Options{MaxKeys: 2})
	a, b, c := r.submit("a", "g", "a"), r.submit("b", "g", "b"), r.submit("c", "g", "c")
	a.try(stored("m1"))
	b.goes()
	before := c.sub
	assert.Equal(t, process.ErrFull, c.admit().Err)
	assert.Equal(t, kindFull, kindOf(r.submit("a", "g", "other").anyway()))
	assert.Equal(t, before, c.sub, "nothing has changed")
	assert.False(t, c.record(stored("m3")))
	c.release()
	assert.Equal(t, verdict.StateStored, a.state())
	assert.Equal(t, verdict.StateInDoubt, b.state())
	assert.Equal(t, kindGo, kindOf(r.submit("a", "g", "a").admit()), "a known event needs no room")
	b.record(refused)
	assert.Equal(t, kindFull, kindOf(c.admit()))
	b.release()
	c.goes()
	c.record(refused)
	r.until(a.look().ForgottenAt())
	assert.Equal(t, kindGo, kindOf(r.submit("d", "g", "d").admit()), "a is forgotten")
}

func TestSweepLenAndClose(t *testing.T) {
	r := newRig(t, process.Options{})
	assert.True(t, r.Sweep(r.Now()))
	var all []*submission
	for i := range 100 {
		s := r.submit(fmt.Sprint(i), "g", "b")
		s.try(stored(fmt.Sprint(i)))
		all = append(all, s)
	}
	assert.Equal(t, 100, r.Len(r.Now()))
	r.until(all[49].look().ForgottenAt())
	assert.False(t, r.Sweep(r.Now()))
	assert.Equal(t, 50, r.Len(r.Now()))
	assert.Equal(t, verdict.StateStored, all[50].state())
	r.until(all[99].look().ForgottenAt() - 1)
	assert.False(t, r.Sweep(r.Now()))
	r.pass(1)
	assert.True(t, r.Sweep(r.Now()))
	assert.Zero(t, r.Len(r.Now()))
}

func TestBodyHash(t *testing.T) {
	ev := process.New(process.Options{}).Event("k", "g", "hello", "", [32]byte{})
	assert.Equal(t, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", ev.BodyHash(), "F-011")
}

// Judgements in words.
const (
	kindGo              = "go"
	kindLateInDoubt     = "late, in doubt"
	kindLateStored      = "late, stored"
	kindAlteredBefore   = "late, altered"
	kindConflict        = "another payload"
	kindDrift           = "another body"
	kindOtherGroup      = "another group"
	kindOtherAttributes = "other attributes"
	kindRetained        = "wait"
	kindFull            = "full"
)

func kindOf(v process.Judgement) string {
	switch v.Kind {
	case verdict.KindGo:
		return kindGo
	case verdict.KindWait:
		return kindRetained
	case verdict.KindLate:
		return "late, " + v.Known.State.Fate().String()
	case verdict.KindRefuse:
		return map[verdict.Reuse]string{
			verdict.ReuseNone: kindFull, verdict.ReuseOtherPayload: kindConflict, verdict.ReuseOtherBody: kindDrift,
			verdict.ReuseOtherGroup: kindOtherGroup, verdict.ReuseOtherAttributes: kindOtherAttributes,
		}[v.Reuse]
	default:
		return "nothing"
	}
}
