//go:build safe || !(amd64 || arm64)

package canonicaljson

import "encoding/binary"

// load64 returns the eight bytes of b from i on, the first in the lowest place.
func load64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }

// load32 returns the four bytes of b from i on, the first in the lowest place.
func load32(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[i:]) }

// store64 is the inverse of load64.
func store64(b []byte, i int, w uint64) { binary.LittleEndian.PutUint64(b[i:], w) }

// loadString64 is load64 for a string.
func loadString64(s string, i int) uint64 {
	b := s[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}
