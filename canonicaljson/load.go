package canonicaljson

import "encoding/binary"

// load64 returns the eight bytes of b from i on, the first in the lowest place.
func load64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }

// load32 returns the four bytes of b from i on, the first in the lowest place.
func load32(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[i:]) }

// store64 is the inverse of load64.
func store64(b []byte, i int, w uint64) { binary.LittleEndian.PutUint64(b[i:], w) }
