package sqsfifo_test

import (
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// A sequence number is a decimal number of up to 128 bits; of what is not, no
// duplicate is claimed.
func TestSequenceNumbersAreCompared(t *testing.T) {
	const most = "340282366920938463463374607431768211455" // 2^128 - 1
	for _, tc := range []struct {
		name, a, b string
		want       bool
	}{
		{"above", "18900000000000000001", "18900000000000000000", true},
		{"equal", "18900000000000000000", "18900000000000000000", false},
		{"below", "18900000000000000000", "18900000000000000001", false},
		{"more digits", "100", "99", true},
		{"across 64 bits", "18446744073709551616", "18446744073709551615", true},
		{"across 64 bits, below", "18446744073709551615", "18446744073709551616", false},
		{"the greatest", most, "340282366920938463463374607431768211454", true},
		{"below the greatest", "340282366920938463463374607431768211454", most, false},
		{"more than 128 bits", "1", "340282366920938463463374607431768211456", true},
		{"many more", "1", most + "0", true},
		{"no number", "1", "2a", true},
		{"none known", "1", "", true},
		{"none answered", "", "2", true},
	} {
		assert.Equal(t, tc.want, sqsfifo.SequenceIsAfter(tc.a, tc.b), tc.name)
	}
}

// A duplicate whose original this process never saw is told by the time in its
// sequence number, if the caller trusts that, and never what was sent just now.
func TestAcceptTimesTellOfAnotherProcess(t *testing.T) {
	for _, trust := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, sqstest.Config{})
			_, err := on(t, q, q).Send(t.Context(), scene)
			require.NoError(t, err)
			time.Sleep(time.Minute)

			p := on(t, q, q, func(c *sqsfifo.Config[Scene]) { c.Delivery.AcceptTimes = trust })
			r, err := p.Send(t.Context(), scene)
			require.NoError(t, err)
			assert.Equal(t, trust, r.Duplicate)
			require.Len(t, q.Messages(), 1)

			q.Inject(sqstest.LoseAnswer(), 5)
			r, err = p.Send(t.Context(), scenes(1, 1)[0])
			require.NoError(t, err)
			assert.Equal(t, 6, r.Attempts)
			assert.False(t, r.Duplicate, "it is this event's own first attempt that SQS knows")
		})
	}
}

func TestAcceptTimesAreReadWithCare(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name, number string
		want         bool
	}{
		{"a minute ago", sequenceAt(now.Add(-time.Minute)), true},
		{"just before the slack of clocks", sequenceAt(now.Add(-5001 * time.Millisecond)), true},
		{"within the slack of clocks", sequenceAt(now.Add(-5 * time.Second)), false},
		{"now", sequenceAt(now), false},
		{"later", sequenceAt(now.Add(time.Hour)), false},
		{"before the interval", sequenceAt(now.Add(-306 * time.Second)), false},
		{"another kind of number", "12345", false},
		{"a greater kind of number", "340282366920938463463374607431768211455", false},
		{"no number", "", false},
	} {
		assert.Equal(t, tc.want, sqsfifo.AcceptedBefore(tc.number, now, now), tc.name)
	}
}

func sequenceAt(t time.Time) string {
	n := new(big.Int).Lsh(big.NewInt(1), 64)
	return n.Add(n, big.NewInt(t.UnixMilli()*256_000)).String()
}
