//go:build safe || !(amd64 || arm64)

package word

import "encoding/binary"

// Load64 returns the eight bytes b[i:i+8] as one integer, with b[i] as its lowest byte.
func Load64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }

// Load32 returns the four bytes b[i:i+4] as one integer, with b[i] as its lowest byte.
func Load32(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[i:]) }

// Store64 is the inverse of [Load64].
func Store64(b []byte, i int, w uint64) { binary.LittleEndian.PutUint64(b[i:], w) }

// LoadString64 is [Load64] for a string.
func LoadString64(s string, i int) uint64 {
	b := s[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}
