package word

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDigits writes and reads numbers of eight digits.
func TestDigits(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for i := range 100_000 {
		d := r.Uint64N(1e8)
		if i < 20_000 {
			d = uint64(i/2) + uint64(i%2)*(1e8-10_000)
		}
		text := fmt.Sprintf("%08d", d)
		b := make([]byte, 8)
		Store64(b, 0, Digits(d))
		require.Equal(t, text, string(b))
		values, marks := Others(Load64(b, 0))
		require.Zero(t, marks)
		require.Equal(t, d, Number(values))
	}
}

// TestOthers replaces one of eight digits by every possible byte. If the new byte is not a
// digit, the function Others must mark it, otherwise not.
func TestOthers(t *testing.T) {
	for c := range 256 {
		for at := range 8 {
			b := []byte("..90817263..")
			b[2+at] = byte(c)
			_, marks := Others(Load64(b, 2))
			if c >= '0' && c <= '9' {
				require.Zero(t, marks, "%q", b)
				continue
			}
			require.Equal(t, at, bits.TrailingZeros64(marks)>>3, "%q", b)
		}
	}
}

// TestLoads compares the results of Load64, LoadString64 and Load32 with integers that
// the test assembles byte by byte.
func TestLoads(t *testing.T) {
	b := []byte("0123456789abcdef\xff\x80")
	for i := range len(b) - 7 {
		var want uint64
		for k := range 8 {
			want |= uint64(b[i+k]) << (8 * k)
		}
		require.Equal(t, want, Load64(b, i))
		require.Equal(t, want, LoadString64(string(b), i))
		require.Equal(t, uint32(want), Load32(b, i))
	}
}
