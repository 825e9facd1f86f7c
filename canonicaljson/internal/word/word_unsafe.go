//go:build !safe && (amd64 || arm64)

package word

import "unsafe"

// The processors of amd64 and arm64 access words at any address, the lowest byte first.

// Load64 returns the eight bytes b[i:i+8] as one integer, with b[i] as its lowest byte.
func Load64(b []byte, i int) uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), i))
}

// Load32 returns the four bytes b[i:i+4] as one integer, with b[i] as its lowest byte.
func Load32(b []byte, i int) uint32 {
	return *(*uint32)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), i))
}

// Store64 is the inverse of [Load64].
func Store64(b []byte, i int, w uint64) {
	*(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), i)) = w
}

// LoadString64 is [Load64] for a string.
func LoadString64(s string, i int) uint64 {
	return *(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.StringData(s)), i))
}
