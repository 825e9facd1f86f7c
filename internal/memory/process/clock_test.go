package process_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/process"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

func TestSuspensionCountsAndWallStepsDoNot(t *testing.T) {
	// This suspension was before the start of the process, so the Memory's clock ignores
	// it.
	c := &process.Clocks{Asleep: time.Hour}
	m := process.NewAt(process.Options{}, c)
	start := m.Now()
	assert.EqualValues(t, 1, start, "zero means none, and what was before does not count")
	assert.Equal(t, process.ClocksStart.Add(time.Hour), m.Wall(start))

	c.Awake += time.Second
	assert.Equal(t, start.Add(time.Second), m.Now())
	for _, step := range []time.Duration{24 * time.Hour, -48 * time.Hour} {
		c.Step = step
		assert.Equal(t, start.Add(time.Second), m.Now())
		assert.Equal(t, process.ClocksStart.Add(time.Hour+step), m.Wall(start), "as the clock is set now")
		assert.Equal(t, process.ClocksStart.Add(time.Hour+step+time.Minute), m.Wall(start.Add(time.Minute)))
	}
	c.Asleep += time.Minute
	assert.Equal(t, start.Add(time.Minute+time.Second), m.Now())
	c.Asleep += 50*time.Millisecond - 1
	assert.Equal(t, start.Add(time.Minute+time.Second), m.Now(), "what two readings may differ by")
	c.Asleep++
	assert.Equal(t, start.Add(time.Minute+time.Second+50*time.Millisecond), m.Now(), "short ones add up")
	c.Asleep -= time.Second
	assert.Equal(t, start.Add(time.Minute+time.Second+50*time.Millisecond), m.Now(), "it never runs backwards")
	assert.Zero(t, m.Wall(0))
}

// While an event is in doubt, the machine is suspended for five minutes. SQS may then
// have forgotten the event, so Admit refuses the next attempt. The wall clock has no
// influence: it may miss the suspension, or be set forward without a suspension.
func TestIntervalDuringSuspension(t *testing.T) {
	r := newRig(t, process.Options{})
	s := r.submit("k", "g", "b")
	s.try(lost)
	before := r.Wall(s.look().ResendBefore())
	r.clocks.Asleep += 5 * time.Minute
	r.clocks.Step = -5 * time.Minute // cancels Asleep: the wall clock does not move
	assert.Equal(t, kindLateInDoubt, kindOf(s.admit()))
	assert.Equal(t, before.Add(-5*time.Minute), r.Wall(s.sub.Known.ResendBefore()))

	s = r.submit("k2", "g", "b")
	s.try(lost)
	r.clocks.Step += 24 * time.Hour
	s.goes()
}

// Memory.Now and Memory.Wall agree with package time, if the machine is not suspended
// during the test.
func TestClockOfThisMachine(t *testing.T) {
	m := process.New(process.Options{})
	began, at := time.Now(), m.Now()
	time.Sleep(10 * time.Millisecond)
	passed := m.Now().Sub(at)
	assert.LessOrEqual(t, passed, time.Since(began))
	assert.GreaterOrEqual(t, passed, 10*time.Millisecond)
	assert.WithinDuration(t, time.Now().Add(time.Hour), m.Wall(m.Now().Add(time.Hour)), time.Second)
	last := m.Now()
	for range 100_000 {
		now := m.Now()
		if now < last || now.Sub(last) > 10*time.Second {
			t.Fatal(now, last)
		}
		last = now
	}
	assert.Less(t, last.Sub(at), time.Since(began), "no suspension is seen where there was none")
}

// In a synctest bubble, Memory.Now follows the bubble's clock.
func TestClockInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := process.New(process.Options{})
		at := m.Now()
		for range 10_000 {
			if m.Now() != at {
				t.Fatal("time passes")
			}
		}
		time.Sleep(window.LastStart)
		assert.Equal(t, at.Add(window.LastStart), m.Now())
		assert.True(t, time.Now().Equal(m.Wall(m.Now())))
		assert.Equal(t, m.Wall(at), m.Wall(at).Round(0), "no monotonic reading")
	})
}

func BenchmarkNow(b *testing.B) {
	m := process.New(process.Options{})
	b.ReportAllocs()
	for b.Loop() {
		m.Now()
	}
}
