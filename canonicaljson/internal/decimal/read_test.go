package decimal

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// read returns the result of the function Parse. If the literal has at most MaxDigits
// digits, read also calls the function Nearest and compares the two results. Nearest may
// report that its result is not exact; otherwise the results must be equal.
func read(t testing.TB, mantissa string, power int) float64 {
	t.Helper()
	parsed := Parse([]byte(mantissa), power)
	digits, places, _ := strings.Cut(mantissa, ".")
	if len(digits)+len(places) <= MaxDigits {
		w, err := strconv.ParseUint(digits+places, 10, 64)
		require.NoError(t, err)
		if b, exact := Nearest(w, power-len(places)); exact {
			require.Equal(t, parsed, b, "%se%d: Parse and Nearest", mantissa, power)
		}
	}
	return math.Float64frombits(parsed)
}

// exactly returns the double nearest to the literal, rounded by math/big.
func exactly(t testing.TB, mantissa string, power int) float64 {
	t.Helper()
	r, ok := new(big.Rat).SetString(fmt.Sprintf("%se%d", mantissa, power))
	require.True(t, ok)
	f, _ := r.Float64()
	return f
}

// TestReadingNearTheMiddle reads the decimals that are hardest to round: those half way
// between two doubles, cut or padded to many lengths, and with their last digit changed. A
// third of the doubles is subnormal.
func TestReadingNearTheMiddle(t *testing.T) {
	const seed = 20260
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	n := 400
	if testing.Short() {
		n = 100
	}
	for i := range n {
		b := r.Uint64N(Infinity)
		switch i % 6 {
		case 0, 1:
			b = r.Uint64N(1 << uint(r.IntN(53)))
		case 2:
			b = uint64(r.IntN(2047)) << 52 // a power of two: its lower neighbour is nearer than the upper one
		}
		low := new(big.Rat).SetFloat64(math.Float64frombits(b))
		high := new(big.Rat).SetFloat64(math.MaxFloat64)
		if b+1 < Infinity {
			high.SetFloat64(math.Float64frombits(b + 1))
		} else {
			high.SetInt(new(big.Int).Lsh(big.NewInt(1), 1024))
		}
		middle := low.Add(low, high)
		middle.Quo(middle, big.NewRat(2, 1))
		places, _ := middle.FloatPrec()
		whole, fraction, _ := strings.Cut(middle.FloatString(places), ".")
		digits := strings.TrimLeft(whole+fraction, "0")
		power := len(digits) - places // the value is 0.digits times 10^power
		for _, size := range []int{1, 5, 15, 16, 17, 18, 19, 20, 21, 25, 40, 100, 400, 767, 768, 799, 800, 801, 900} {
			text := digits
			if size < len(text) {
				text = text[:size]
			} else {
				text += strings.Repeat("0", size-len(text))
			}
			last := text[len(text)-1]
			for _, c := range []byte{last, '0' + (last-'0'+1)%10, '0' + (last-'0'+9)%10} {
				mantissa := "0." + text[:len(text)-1] + string(c)
				require.Equal(t, exactly(t, mantissa, power), read(t, mantissa, power), "%se%d", mantissa, power)
				// Read the same digits with the point at another place.
				if at := r.IntN(len(text)); at > 0 {
					moved := text[:at] + "." + text[at:len(text)-1] + string(c)
					require.Equal(t, exactly(t, moved, power-at), read(t, moved, power-at), "%se%d", moved, power-at)
				}
			}
		}
	}
}

// TestReadingTheEnds reads literals beyond, below and just inside the range of doubles.
func TestReadingTheEnds(t *testing.T) {
	for _, row := range []struct {
		mantissa string
		power    int
		want     float64
	}{
		{"0", 1_600_000_000, 0},
		{"0.000", 5, 0},
		{"1", -1_600_000_000, 0},
		{"1", 1_600_000_000, math.Inf(1)},
		{"9999999999999999999", -343, 0},
		{"2470328229206232720", -342, 0},
		{"2470328229206232721", -342, math.SmallestNonzeroFloat64},
		{"1797693134862315807", 290, math.MaxFloat64},
		{"1797693134862315808", 290, math.Inf(1)},
		{"0." + strings.Repeat("0", 2_000_000) + "15", 2_000_001, 1.5},
		{"15" + strings.Repeat("0", 2_000_000), -2_000_001, 1.5},
		{"9007199254740993" + strings.Repeat("0", 900), -900, 9007199254740992},
		{"9007199254740993" + strings.Repeat("0", 900) + "1", -901, 9007199254740994},
	} {
		require.Equal(t, row.want, read(t, row.mantissa, row.power), "%.40se%d", row.mantissa, row.power)
	}
}

// FuzzParse compares Parse with strconv.ParseFloat. The exponents have up to four
// digits, which both functions read in the same way.
func FuzzParse(f *testing.F) {
	f.Add(uint64(5), uint64(0), -324, 1)
	f.Add(uint64(9007199254740993), uint64(1), 0, 3)
	f.Add(uint64(17976931348623158), uint64(7), 292, 17)
	f.Fuzz(func(t *testing.T, a, b uint64, power, point int) {
		power %= 1_000
		digits := strconv.FormatUint(a, 10) + strconv.FormatUint(b, 10)
		if point = (point&0xFF)%len(digits) + 1; point < len(digits) {
			digits = digits[:point] + "." + digits[point:]
		}
		want, _ := strconv.ParseFloat(fmt.Sprintf("%se%d", digits, power), 64)
		if got := read(t, digits, power); got != want {
			t.Fatalf("%se%d is read as %v, want %v", digits, power, got, want)
		}
	})
}
