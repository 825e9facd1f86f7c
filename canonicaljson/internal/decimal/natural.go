package decimal

import (
	"cmp"
	"math/bits"
)

// natural is a natural number of at most 4096 bits, in words of 64 bits, the least
// significant word first. [Parse] needs about 2,800 bits. Unlike math/big, natural does not
// allocate, and it takes a tenth of the time.
type natural struct {
	words [64]uint64
	n     int // number of words in use; words[n-1] is not zero
}

// mulAdd sets x to x*m + a.
func (x *natural) mulAdd(m, a uint64) {
	for i := range x.words[:x.n] {
		high, low := bits.Mul64(x.words[i], m)
		low, carry := bits.Add64(low, a, 0)
		x.words[i] = low
		a = high + carry
	}
	if a != 0 {
		x.words[x.n] = a
		x.n++
	}
}

// mulPowerOfFive sets x to x * 5^k.
func (x *natural) mulPowerOfFive(k int) {
	const largest, power = 27, 7450580596923828125 // 5^27
	for ; k >= largest; k -= largest {
		x.mulAdd(power, 0)
	}
	rest := uint64(1)
	for range k {
		rest *= 5
	}
	x.mulAdd(rest, 0)
}

// shiftLeft sets x to x * 2^k.
func (x *natural) shiftLeft(k int) {
	words, rest := k/64, uint(k%64)
	high := uint64(0)
	for i := x.n - 1; i >= 0; i-- {
		w := x.words[i]
		x.words[i+words+1] = high | w>>(64-rest)
		high = w << rest
	}
	x.words[words] = high
	clear(x.words[:words])
	x.n += words + 1
	for x.n > 0 && x.words[x.n-1] == 0 {
		x.n--
	}
}

// compare returns -1 if x < y, 0 if x equals y, and 1 if x > y.
func (x *natural) compare(y *natural) int {
	if x.n != y.n {
		return cmp.Compare(x.n, y.n)
	}
	for i := x.n - 1; i >= 0; i-- {
		if x.words[i] != y.words[i] {
			return cmp.Compare(x.words[i], y.words[i])
		}
	}
	return 0
}
