package canonicaljson_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNumberText compares the texts of more than a million doubles with the definition in
// ECMA-262 (Number::toString). It uses exact integer arithmetic instead of strconv.
func TestNumberText(t *testing.T) {
	count := 0
	judge := newNumberJudge()
	check := func(f float64) {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return
		}
		got, err := canonicaljson.AppendNumber(nil, f)
		if err != nil {
			t.Fatalf("%x: %v", f, err)
		}
		if why := judge.fault(f, string(got)); why != "" {
			t.Fatalf("%x (%016x): %s: %s", f, math.Float64bits(f), got, why)
		}
		count++
	}
	around := func(f float64) {
		check(f)
		check(-f)
		up, down := f, f
		for range 3 {
			up, down = math.Nextafter(up, math.Inf(1)), math.Nextafter(down, math.Inf(-1))
			check(up)
			check(down)
		}
	}
	around(0)
	for e := -1074; e <= 1023; e++ {
		around(math.Ldexp(1, e))
	}
	for e := -323; e <= 308; e++ {
		f, _ := new(big.Rat).SetFrac(judge.ten(max(e, 0)), judge.ten(max(-e, 0))).Float64()
		for digit := range 10 {
			around(float64(digit) * f)
		}
	}
	around(math.MaxFloat64)
	for n := range 10_000 {
		check(float64(n) / 100)
		check(float64(1<<53 - int64(n)))
		check(math.Float64frombits(uint64(n)))
	}
	n := 1_000_000
	if testing.Short() {
		n = 50_000
	}
	r := rand.New(rand.NewPCG(8785, 4))
	for i := range n {
		switch i % 4 {
		case 0, 1:
			check(math.Float64frombits(r.Uint64()))
		case 2: // coordinates and the like
			check((r.Float64() - 0.5) * 360)
		case 3: // few digits
			check(float64(r.IntN(1_000_000_000)) * math.Pow10(r.IntN(30)-20))
		}
	}
	t.Log(count, "doubles")
}

// TestNumberReading compares the reading of literals of one to forty digits with the
// exact rounding of math/big.
func TestNumberReading(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 10_000
	}
	judge := newNumberJudge()
	r := rand.New(rand.NewPCG(8785, 5))
	for i := range n {
		var b strings.Builder
		if r.IntN(2) == 0 {
			b.WriteByte('-')
		}
		digits := 1 + r.IntN(40)
		if i%2 == 0 {
			digits = 15 + r.IntN(6)
		}
		b.WriteByte('1' + byte(r.IntN(9)))
		point := r.IntN(digits + 2)
		for d := 1; d < digits; d++ {
			if d == point {
				b.WriteByte('.')
			}
			b.WriteByte('0' + byte(r.IntN(10)))
		}
		if r.IntN(3) == 0 {
			fmt.Fprintf(&b, "e%+03d", r.IntN(600)-320)
		}
		literal := b.String()
		exact, ok := new(big.Rat).SetString(literal)
		require.True(t, ok)
		want, _ := exact.Float64()
		got, err := canonicaljson.Canonicalize([]byte(literal))
		if math.IsInf(want, 0) {
			require.ErrorIs(t, err, canonicaljson.ErrNumberRange, literal)
			continue
		}
		require.NoError(t, err, literal)
		if why := judge.fault(want, string(got)); why != "" {
			t.Fatalf("%s: %s is not the text of %x: %s", literal, got, want, why)
		}
		// In strict mode, an integer is accepted if its canonical text denotes the same
		// integer.
		if !strings.ContainsAny(literal, ".e") {
			read, ok := new(big.Rat).SetString(string(got))
			require.True(t, ok)
			_, err := canonicaljson.CanonicalizeStrict([]byte(literal))
			require.Equal(t, read.Cmp(exact) != 0, err != nil, "%s, %s: %v", literal, got, err)
		}
	}
}

// TestNumberTies reads decimals exactly half way between two doubles. It also reads them
// with the digits 0001 appended, which makes them slightly larger.
func TestNumberTies(t *testing.T) {
	r := rand.New(rand.NewPCG(8785, 6))
	for range 2_000 {
		f := math.Float64frombits(r.Uint64N(0x7FE0000000000000))
		low, high := new(big.Rat).SetFloat64(f), new(big.Rat).SetFloat64(math.Nextafter(f, math.Inf(1)))
		middle := new(big.Rat).Add(low, high)
		middle.Quo(middle, big.NewRat(2, 1))
		places, _ := middle.FloatPrec()
		text := middle.FloatString(places)
		literals := []string{text, text + point(text) + "0001"}
		// Short literals: an odd integer of 54 bits, also times a small power of ten.
		odd := (1<<53 + r.Uint64N(1<<53)) | 1
		literals = append(literals, fmt.Sprint(odd), fmt.Sprint(odd, ".0"), fmt.Sprint(odd, "e0"), fmt.Sprint(odd, "e", 1+r.IntN(3)), fmt.Sprintf("%d.%de1", odd/10, odd%10), fmt.Sprintf("%d.5", odd/4))
		for _, literal := range literals {
			exact, ok := new(big.Rat).SetString(literal)
			require.True(t, ok)
			want, _ := exact.Float64()
			wantText, err := canonicaljson.AppendNumber(nil, want)
			require.NoError(t, err)
			got, err := canonicaljson.Canonicalize([]byte(literal))
			require.NoError(t, err)
			require.Equal(t, string(wantText), string(got), literal)
		}
	}
}

// TestExponentsBeyondAllReason reads literals with huge exponents and ordinary values.
func TestExponentsBeyondAllReason(t *testing.T) {
	zeros := strings.Repeat("0", 1_500_000)
	for _, row := range []struct{ literal, want string }{
		{"0." + zeros + "15e1500001", "1.5"},
		{"15" + zeros + "e-1500001", "1.5"},
		{"-0." + zeros + "15e+1500001", "-1.5"},
		{"1e" + zeros + "1", "10"},
		{"0e999999999999999999999999", "0"},
		{"1e-999999999999999999999999", "0"},
		{"123456789012345678901234567890e-999999999999999999999999", "0"},
		{"1e999999999999999999999999", ""},
		{"0." + zeros + "1e999999999999999999999999", ""},
	} {
		got, err := canonicaljson.CanonicalizeStrict([]byte(row.literal))
		if row.want == "" {
			assert.ErrorIs(t, err, canonicaljson.ErrNumberRange, "%.30s", row.literal)
			continue
		}
		require.NoError(t, err, "%.30s", row.literal)
		assert.Equal(t, row.want, string(got), "%.30s", row.literal)
	}
}

func point(text string) string {
	if strings.Contains(text, ".") {
		return ""
	}
	return "."
}

func TestFloat32Text(t *testing.T) {
	for _, row := range []struct {
		name string
		f    float32
		want string
	}{
		{"a tenth", 0.1, "0.1"},
		{"largest", math.MaxFloat32, "3.4028235e+38"},
		{"smallest", math.SmallestNonzeroFloat32, "1e-45"},
		{"the least without exponent", 1e-6, "0.000001"},
		{"below it", 9.999999e-7, "9.999999e-7"},
		{"the least with exponent", 1e21, "1e+21"},
		{"below it in digits", 9.9999995e20, "999999950000000000000"},
		{"integer", 16777216, "16777216"},
		{"zero", float32(math.Copysign(0, -1)), "0"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := canonicaljson.Marshal(row.f)
			require.NoError(t, err)
			assert.Equal(t, row.want, string(got))
		})
	}
}

// numberJudge checks the texts of doubles against ECMA-262.
type numberJudge struct{ tens []*big.Int }

func newNumberJudge() *numberJudge { return &numberJudge{} }

func (j *numberJudge) ten(n int) *big.Int {
	for len(j.tens) <= n {
		if len(j.tens) == 0 {
			j.tens = append(j.tens, big.NewInt(1))
			continue
		}
		j.tens = append(j.tens, new(big.Int).Mul(j.tens[len(j.tens)-1], big.NewInt(10)))
	}
	return j.tens[n]
}

// fault returns "" if the argument `text` is the text that ECMA-262 prescribes for f.
// Otherwise it returns the difference.
func (j *numberJudge) fault(f float64, text string) string {
	if f == 0 {
		if text != "0" {
			return "want 0"
		}
		return ""
	}
	if f < 0 {
		rest, found := strings.CutPrefix(text, "-")
		if !found {
			return "want a sign"
		}
		f, text = -f, rest
	}
	digits, exponent, why := readLayout(text)
	if why != "" {
		return why
	}
	if len(digits) > 17 {
		return "more than 17 digits"
	}
	var d int64
	for _, c := range digits {
		d = d*10 + int64(c-'0')
	}

	// In units of 2^e/4, doubles are usually 4 apart. Decimals between low and high round
	// to f.
	m, e := mantissa(f)
	value := new(big.Int).Lsh(big.NewInt(m), 2)
	low, high := new(big.Int).Sub(value, big.NewInt(2)), new(big.Int).Add(value, big.NewInt(2))
	if m == 1<<52 && e > -1074 {
		// f is a power of two. The next lower double is only 2 units away, so the midpoint is
		// 1 unit below f.
		low.Add(low, big.NewInt(1))
	}
	// Compare d*10^exponent with value*2^(e-2) as the integers d*unit and value*scale.
	unit, scale := big.NewInt(1), big.NewInt(1)
	if exponent >= 0 {
		unit = j.ten(exponent)
	} else {
		scale = j.ten(-exponent)
	}
	if e-2 >= 0 {
		scale = new(big.Int).Lsh(scale, uint(e-2))
	} else {
		unit = new(big.Int).Lsh(unit, uint(2-e))
	}
	value.Mul(value, scale)
	low.Mul(low, scale)
	high.Mul(high, scale)
	inside := func(n int64) bool {
		x := new(big.Int).Mul(big.NewInt(n), unit)
		below, above := x.Cmp(low), x.Cmp(high)
		if m%2 == 0 { // ties round to even
			return below >= 0 && above <= 0
		}
		return below > 0 && above < 0
	}
	distance := func(n int64) *big.Int {
		x := new(big.Int).Mul(big.NewInt(n), unit)
		return x.Sub(x, value).Abs(x)
	}
	if !inside(d) {
		return "denotes another double"
	}
	if shorter := d / 10 * 10; len(digits) > 1 && (inside(shorter) || inside(shorter+10)) {
		return "fewer digits denote it too"
	}
	// If d-1 or d+1 also denotes f, d must be closer, or equally close and even.
	for _, other := range []int64{d - 1, d + 1} {
		if other == 0 || !inside(other) || len(fmt.Sprint(other)) != len(digits) {
			continue
		}
		switch distance(d).Cmp(distance(other)) {
		case 1:
			return fmt.Sprint(other, " is closer")
		case 0:
			if d%2 != 0 {
				return fmt.Sprint(other, " is as close, and even")
			}
		}
	}
	return ""
}

// mantissa returns m and e with f = m*2^e, m below 2^53.
func mantissa(f float64) (int64, int) {
	b := math.Float64bits(f)
	m, e := int64(b&(1<<52-1)), int(b>>52&0x7FF)
	if e == 0 {
		return m, -1074
	}
	return m | 1<<52, e - 1075
}

// readLayout reads a number in the layout of ECMA-262. The number is `digits` times
// 10^exponent. If the text has another layout, readLayout returns only a description of the
// fault.
func readLayout(text string) (digits string, exponent int, fault string) {
	number, power, scientific := strings.Cut(text, "e")
	whole, places, fraction := strings.Cut(number, ".")
	all := whole + places
	digits = strings.TrimLeft(all, "0")
	// magnitude is the position of the decimal point: 3 for 123.4.
	magnitude := len(whole) - (len(all) - len(digits))
	if whole == "" || strings.Trim(all, "0123456789") != "" || digits == "" || fraction && (places == "" || strings.HasSuffix(places, "0")) {
		return "", 0, "not in the form of a number"
	}
	digits = strings.TrimRight(digits, "0")
	if scientific {
		var p int
		if _, err := fmt.Sscanf(power, "%d", &p); err != nil || fmt.Sprintf("%+d", p) != power {
			return "", 0, "the exponent is not written with a sign and without zeros"
		}
		magnitude += p
		want := digits[:1]
		if len(digits) > 1 {
			want += "." + digits[1:]
		}
		if number != want {
			return "", 0, "want one digit before the point"
		}
	}
	if inDigits := magnitude > -6 && magnitude <= 21; inDigits == scientific {
		return "", 0, "an exponent is for magnitudes below 1e-6 and from 1e21 on"
	}
	if !scientific {
		want := ""
		switch {
		case magnitude <= 0:
			want = "0." + strings.Repeat("0", -magnitude) + digits
		case magnitude >= len(digits):
			want = digits + strings.Repeat("0", magnitude-len(digits))
		default:
			want = digits[:magnitude] + "." + digits[magnitude:]
		}
		if text != want {
			return "", 0, "want " + want
		}
	}
	return digits, magnitude - len(digits), ""
}
