package process_test

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/process"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

func TestDuplicateByMessageID(t *testing.T) {
	r := newRig(t, process.Options{})
	s := r.submit("k", "g", "b")
	assert.False(t, s.try(lost))
	assert.False(t, s.try(stored("m1")), "its first attempt was stored")
	known := s.look()
	s = r.submit("k", "g", "b")
	assert.True(t, s.try(stored("m1")))
	assert.Equal(t, known, s.look(), "a duplicate does not restart the interval (F-020)")

	// SQS answers with a new message ID, for example after a purge: SQS has stored
	// another copy.
	since := r.Now()
	s = r.submit("k", "g", "b")
	assert.False(t, s.try(stored("m2")))
	assert.Equal(t, since, s.look().Since)
	assert.Equal(t, r.Now().Add(span), s.look().ForgottenAt())

	// The Memory forgets the stored event during a resend. The submission has kept the
	// message ID m2.
	r.until(s.look().ResendBefore())
	s = r.submit("k", "g", "b")
	s.goes()
	r.pass(time.Hour)
	assert.True(t, s.record(stored("m2")))
	assert.Equal(t, verdict.StateStored, s.state())

	assert.False(t, r.submit("k2", "g", "b").try(stored("m2")), "of another event")

	// An answer without a message ID proves nothing: the event stays in doubt.
	s = r.submit("k3", "g", "b")
	assert.False(t, s.try(stored("")))
	assert.Equal(t, verdict.StateInDoubt, s.state())
	assert.False(t, s.try(stored("")))
}

// During an attempt, the machine is suspended for an hour, so the event's record expires.
// Another event with the same dedupe key then gets a record in its place. The end of the
// first attempt must not change this record.
func TestLostPlace(t *testing.T) {
	r := newRig(t, process.Options{})
	s := r.submit("k", "g", "b")
	s.try(stored("m1"))
	s = r.submit("k", "g", "b")
	s.goes()
	r.clocks.Asleep += time.Hour
	other := r.submit("k", "g", "other")
	assert.Equal(t, kindRetained, kindOf(other.admit()))
	r.pass(2 * time.Minute)
	other.try(stored("m2"))
	known := other.look()
	s.record(stored("m3"))
	assert.Equal(t, known, other.look())
	assert.Equal(t, verdict.StateStored, s.state())
}

// A stored event is sent again. The machine is suspended during this second attempt, which
// ends without an answer after more than an hour: SQS may have stored the event twice. The
// cases differ in the result of a third attempt, made before the second one ends.
func TestLateEndWithoutProof(t *testing.T) {
	for _, meanwhile := range []string{"nothing", "clear", "under way", "in doubt", "stored", "altered"} {
		r := newRig(t, process.Options{})
		first := r.Now()
		r.submit("k", "g", "b").try(stored("m1"))
		s := r.submit("k", "g", "b")
		r.pass(time.Second)
		s.goes()
		r.clocks.Asleep += time.Hour
		other := r.submit("k", "g", "b")
		assert.Equal(t, kindRetained, kindOf(other.admit()))
		since := r.pass(2 * time.Minute)
		if meanwhile != "nothing" {
			other.goes()
			r.pass(time.Second)
		}
		switch meanwhile {
		case "clear":
			other.record(refused)
		case "in doubt":
			other.record(lost)
		case "stored":
			other.record(stored("m2"))
		case "altered":
			other.record(altered)
		}
		end := r.pass(time.Second)
		before := s.look()
		s.record(lost)
		k := s.look()
		switch meanwhile {
		case "nothing", "clear":
			assert.Equal(t, verdict.StateStored, k.State, meanwhile)
			assert.Equal(t, first, k.Since, "the interval by which the attempt was judged")
			assert.Equal(t, end.Add(span), k.ForgottenAt())
		case "in doubt":
			assert.Equal(t, verdict.StateStored, k.State)
			assert.Equal(t, first, k.Since)
			assert.Equal(t, since.Add(window.Request+span), k.ForgottenAt(), "the other may arrive later than this one")
		case "under way":
			assert.True(t, k.UnderWay)
			r.pass(time.Second)
			other.record(refused)
			assert.Equal(t, verdict.StateInDoubt, s.state(), "the late one may be stored")
			assert.Equal(t, r.Now().Add(window.Request+span), s.look().ForgottenAt())
		case "stored":
			assert.Equal(t, before.Since, k.Since)
			assert.Equal(t, end.Add(span), k.ForgottenAt(), "the late attempt may be the last one that SQS stored")
		default:
			assert.Equal(t, before, k, meanwhile)
		}
		if want, ok := map[string]string{"nothing": kindLateStored, "clear": kindLateStored, "in doubt": kindLateStored}[meanwhile]; ok {
			assert.Equal(t, want, kindOf(s.admit()), "no attempt begins outside of the interval of the stored event")
		}
	}
}

func sequenceAt(at time.Time, n int64) string {
	number := new(big.Int).Lsh(big.NewInt(1), 64)
	return number.Add(number, big.NewInt(at.UnixMilli()*256_000+n)).String()
}

func TestDuplicateByGroupNumber(t *testing.T) {
	at := process.ClocksStart
	number := func(d time.Duration, n int64) string { return sequenceAt(at.Add(d), n) }
	for _, tc := range []struct {
		name, mark, answer string
		want               bool
	}{
		{"below", number(0, 7), number(0, 6), true},
		{"equal", number(0, 7), number(0, 7), true},
		{"above", number(0, 7), number(0, 8), false},
		{"just less than an interval and the slack", number(305*time.Second, -1), number(0, 0), true},
		{"an interval and the slack", number(305*time.Second, 0), number(0, 0), false},
		{"numbers that started again", number(0, 0), "18446744073709551617", false},
		{"an emulator's counter", "5", "4", false},
		{"an emulator's padded counter", "00000000000000000005", "00000000000000000004", false},
		{"the mark has another form", "18446744073709551615", number(0, 0), false},
		{"the answer has another form", number(0, 0), "18446744073709551615", false},
		{"more than that form", "36893488147419103241", "36893488147419103240", false},
		{"the greatest", "36893488147419103231", "36893488147419103230", true},
		{"not a number", number(0, 500), number(0, 6)[:19] + "a", false},
		{"none", number(0, 7), "", false},
		{"none before", "", number(0, 7), false},
	} {
		r := newRig(t, process.Options{})
		s := r.submit("k", "g", "b")
		r.submit("k1", "g", "b1").try(stored("m1", tc.mark))
		elsewhere := r.submit("k2", "g2", "b2")
		assert.False(t, elsewhere.try(stored("m2", tc.answer)), "another group")
		assert.Equal(t, tc.want, s.try(stored("m", tc.answer)), tc.name)
	}

	// The method Record compares the sequence number in SQS's answer with the group's
	// highest number that was known at the start of the submission's first attempt.
	// Numbers learned afterwards do not count.
	r := newRig(t, process.Options{})
	r.submit("k1", "g", "b1").try(stored("m1", number(0, 9)))
	r.submit("k2", "g", "b2").try(stored("m2", number(0, 5)))
	assert.True(t, r.submit("k3", "g", "b3").try(stored("m3", number(0, 9))))
	s := r.submit("k4", "g", "b4")
	s.try(lost)
	r.submit("k5", "g", "b5").try(stored("m5", number(0, 20)))
	assert.False(t, s.try(stored("m4", number(0, 15))), "its first attempt was stored")
	s = r.submit("k6", "g", "b6")
	s.goes()
	r.submit("k7", "g", "b7").try(stored("m7", number(0, 30)))
	assert.False(t, s.record(stored("m6", number(0, 25))), "they were under way at once")
}

func TestDuplicateByAcceptTime(t *testing.T) {
	for _, tc := range []struct {
		name string
		at   time.Duration // time at which SQS accepted the message, minus the start of the first attempt
		want bool
	}{
		{"just before the slack of clocks", -window.Slack - time.Millisecond, true},
		{"within the slack of clocks", -window.Slack, false},
		{"at once", 0, false},
		{"later", time.Hour, false},
		{"the oldest", -span + time.Minute + time.Millisecond, true},
		{"before the interval", -span + time.Minute, false},
	} {
		for _, trust := range []bool{true, false} {
			for _, step := range []time.Duration{0, time.Hour} {
				r := newRig(t, process.Options{AcceptTimes: trust})
				r.pass(time.Hour)
				s := r.submit("k", "g", "b")
				s.try(lost)
				r.pass(time.Minute - time.Second)
				s.goes()
				r.clocks.Step = step
				answer := sequenceAt(process.ClocksStart.Add(time.Hour+step+tc.at), 0)
				assert.Equal(t, trust && tc.want, s.record(stored("m", answer)), tc.name)
			}
		}
	}
	r := newRig(t, process.Options{AcceptTimes: true})
	assert.False(t, r.submit("k", "g", "b").try(stored("m", "17")))
}

// SQS's clock and the wall clock differ by up to an hour. Record still computes the right
// time of acceptance, because it subtracts this difference (Result.Lead).
func TestClockOfSQSIsAhead(t *testing.T) {
	for _, lead := range []time.Duration{-time.Hour, -3 * time.Minute, 3 * time.Minute, time.Hour} {
		r := newRig(t, process.Options{AcceptTimes: true})
		r.pass(time.Hour)
		answer := func(id string, ago time.Duration) process.Result {
			a := stored(id, sequenceAt(process.ClocksStart.Add(time.Hour-ago+lead), 0))
			a.Lead = process.Lead{Least: lead, Most: lead}
			return a
		}
		accepted := r.Now().Add(-time.Minute)
		s := r.submit("k", "g", "b")
		assert.True(t, s.try(answer("m", time.Minute)), lead)
		assert.Equal(t, accepted, s.look().Since, lead)
		assert.False(t, r.submit("k2", "g", "b2").try(answer("m2", 0)), lead)
	}
}

// The Date header of the answer is wrong by minutes: according to it, SQS accepted the
// message before the submission. According to this machine's clock, SQS has just accepted
// the message. The contradiction proves nothing.
func TestAWrongDateProvesNoDuplicate(t *testing.T) {
	for _, lead := range []time.Duration{10 * time.Second, 2 * time.Minute, 4 * time.Minute} {
		r := newRig(t, process.Options{AcceptTimes: true})
		r.pass(time.Hour)
		for n := range int64(20) {
			key := fmt.Sprint("k", n)
			a := stored("m"+key, sequenceAt(r.Wall(r.Now()).Add(-time.Duration(n)*200*time.Millisecond), n))
			a.Lead = process.Lead{Least: lead, Most: lead + time.Second}
			assert.False(t, r.submit(key, "g"+key, key).try(a), "%v, message %d", lead, n)
		}
	}
}

// Another process stored the event. This machine's wall clock is wrong by more than the
// deduplication interval, so the age of the message is unknown. SQS may forget the event
// at any time, so no further attempt starts.
func TestDuplicateOfUnknownAge(t *testing.T) {
	for _, wrong := range []time.Duration{-time.Hour, time.Hour} {
		r := newRig(t, process.Options{})
		r.pass(time.Hour)
		r.clocks.Step = wrong
		number := func(ago time.Duration) string { return sequenceAt(process.ClocksStart.Add(time.Hour-ago), 0) }
		r.submit("k1", "g", "b1").try(stored("m1", number(time.Second)))
		s := r.submit("k", "g", "b")
		assert.True(t, s.try(stored("m", number(2*time.Minute))), "a smaller number than that of an earlier message")
		assert.Equal(t, kindLateStored, kindOf(s.admit()))
		again := r.submit("k", "g", "b")
		assert.Equal(t, kindLateStored, kindOf(again.admit()))
		r.pass(span)
		assert.Equal(t, kindGo, kindOf(r.submit("k", "g", "b").admit()))

		s = r.submit("k2", "g", "b2")
		assert.False(t, s.try(stored("m2", number(-span))), "a new message")
		assert.Equal(t, kindGo, kindOf(s.admit()))
	}
}
