package storetest

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// In each history, a process was killed before its call was answered. The call may have
// taken effect at any time after its start, or never. The checker must accept a history if
// the answers to the other calls fit one of these cases, and must reject all other
// histories.
func TestHistoriesWithCallsWithoutAnswer(t *testing.T) {
	killed := recorded{Kind: "claim", Token: idempotency.Token{1}, Payload: "payload"}
	other := recorded{Kind: "claim", Token: idempotency.Token{2}, Payload: "payload"}
	held := idempotency.Record{Status: idempotency.StatusRunning, Token: killed.Token, Fence: 5, Fingerprint: fingerprint("payload")}
	lookup := recorded{Kind: "lookup"}
	granted := answered{Decision: idempotency.DecisionNew, Record: idempotency.Record{Status: idempotency.StatusRunning, Token: other.Token, Fence: 7}}
	type step struct {
		call   recorded
		answer answered
	}
	completion := recorded{Kind: "complete", Fence: 7, Response: []byte("r")}
	succeeded := idempotency.Record{Status: idempotency.StatusSucceeded, Fence: 7, Fingerprint: fingerprint("payload"), Result: idempotency.Result{Response: []byte("r")}}
	for _, tc := range []struct {
		name   string
		killed recorded
		before []step // calls that ended before the killed call
		after  []step
		want   porcupine.CheckResult
	}{
		{"not made", killed, nil, []step{{other, granted}}, porcupine.Ok},
		{"made", killed, nil, []step{{lookup, answered{Record: held}}, {other, answered{Decision: idempotency.DecisionInProgress, Record: held}}}, porcupine.Ok},
		{"made later", killed, nil, []step{{lookup, answered{}}, {lookup, answered{Record: held}}}, porcupine.Ok},
		{"made, then not", killed, nil, []step{{lookup, answered{Record: held}}, {lookup, answered{}}}, porcupine.Illegal},
		{"made and overtaken", killed, nil, []step{{lookup, answered{Record: held}}, {other, granted}}, porcupine.Illegal},
		{"completion made", completion, []step{{other, granted}}, []step{{lookup, answered{Record: succeeded}}}, porcupine.Ok},
		{"completion not made", completion, []step{{other, granted}}, []step{{lookup, answered{Record: idempotency.Record{Status: idempotency.StatusRunning, Token: other.Token, Fence: 7, Fingerprint: fingerprint("payload")}}}}, porcupine.Ok},
		{"completion before its call", completion, []step{{other, granted}, {lookup, answered{Record: succeeded}}}, nil, porcupine.Illegal},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := &recording{name: "test"}
			at := int64(0)
			do := func(s step) {
				h.addCall("other", s.call, at+1)
				h.addAnswer("other", s.answer, at+2)
				at += 2
			}
			for _, s := range tc.before {
				do(s)
			}
			at++
			h.addCall("killed", tc.killed, at)
			for _, s := range tc.after {
				do(s)
			}
			if got := porcupine.CheckOperationsTimeout(model, h.history(), 10*time.Second); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
