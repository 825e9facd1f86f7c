package process

import (
	"errors"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// memorySpan is the longest time for which SQS may remember a message, by this machine's
// clock.
const memorySpan = window.Interval + window.Slack

// mayBeStored reports whether SQS has, or may have, the event unchanged (not StateAltered).
func mayBeStored(s verdict.State) bool { return s == verdict.StateInDoubt || s == verdict.StateStored }

// Known is a snapshot of this process's knowledge of an event. The zero value is
// StateUnknown.
type Known struct {
	State verdict.State

	// UnderWay reports that a request with the event is under way and State is StateInDoubt.
	UnderWay bool

	// otherUnproven is true if a request is under way, and another request has ended
	// without proof.
	otherUnproven bool

	// Since is the start of the first attempt that may have stored a message in SQS. In
	// StateClear, Since is the start of a refused attempt. In StateUnknown, it
	// is zero.
	Since Instant

	forgottenAt Instant
}

// ResendBefore returns the last instant at which another attempt may start. SQS may forget
// the event before a later attempt arrives, and would then store the event twice. The
// result has a meaning only in StateInDoubt and StateStored.
func (k Known) ResendBefore() Instant { return k.Since.Add(window.LastStart) }

// ForgottenAt returns the time from which SQS has certainly forgotten the event and would
// store a resend. It is zero in StateUnknown and StateClear.
//
// While a request is under way (UnderWay), the result is an estimate. The time may still
// grow, normally by at most 20 seconds (window.Request).
func (k Known) ForgottenAt() Instant { return k.forgottenAt }

// keptUntil returns the earliest time at which the event's record may expire. A record that
// disappears earlier was freed by the Memory, because SQS refused all attempts. The State
// must be StateInDoubt, StateStored or StateAltered.
func (k Known) keptUntil() Instant {
	switch {
	case k.State != verdict.StateInDoubt || k.otherUnproven:
		// The attempt that started at Since may have ended immediately. A request under way
		// does not make the result later, because SQS may refuse the request.
		return k.Since.Add(memorySpan)
	case k.UnderWay:
		// k.forgottenAt assumes that the request ends window.Request after the time of the
		// snapshot k. But it may have ended immediately, so subtract window.Request.
		return k.forgottenAt.Add(-window.Request)
	default:
		return k.forgottenAt
	}
}

// Judgement is the answer of Judge and Admit:
//
//   - KindGo: the attempt has begun. Call Record when it has ended. After Admit with the
//     parameter `anyway`, Reuse may be set.
//   - KindLate: Known.State says why: StateInDoubt or StateStored if SQS may forget the
//     event before a new attempt arrives, StateAltered if SQS would drop the event until
//     Known.ForgottenAt().
//   - KindWait: after a suspension of the machine, an earlier submission may still need the
//     event's old record, normally for at most two minutes. KindWait is also the answer
//     while another attempt of the event is under way.
//   - KindRefuse with Reuse: this process sent another event with the same dedupe key.
//   - KindRefuse with ErrFull: the Memory holds Options.MaxKeys records, or its maximum
//     capacity.
type Judgement struct {
	verdict.Verdict

	// Known describes the event before this attempt. With KindRefuse and Reuse, Known
	// describes the other event.
	Known Known
}

// ErrFull is the reason for refusing an event if the Memory is full.
var ErrFull = errors.New("the producer remembers as many dedupe keys as it may")

// retainedDelay is the delay of KindWait.
const retainedDelay = time.Second

func late(k Known) Judgement { return Judgement{verdict.Verdict{Kind: verdict.KindLate}, k} }

func wait(k Known) Judgement {
	return Judgement{verdict.Verdict{Kind: verdict.KindWait, Delay: retainedDelay}, k}
}
