package sqsfifo_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo"
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
