// Package guid derives identifiers, whatever its name suggests. // want package:"reach"
package guid

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/fnv"
	"strconv"
)

// Keyed is what has a key.
type Keyed interface{ Key() string }

// NewFor is a function of its argument.
func NewFor(k int64) string { // want NewFor:"derived"
	h := fnv.New64a()
	_, _ = h.Write([]byte(strconv.FormatInt(k, 10)))
	return strconv.FormatUint(h.Sum64(), 16)
}

// NewOf is a function of its arguments.
func NewOf(kind byte, n uint64) string { // want NewOf:"derived"
	sum := sha256.Sum256([]byte{kind, byte(n), byte(n >> 8)})
	return hex.EncodeToString(sum[:])
}
