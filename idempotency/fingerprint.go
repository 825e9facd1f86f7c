package idempotency

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// MaxSpec is the largest length of [Fingerprint.Spec], in bytes.
const MaxSpec = 64

// Fingerprint is a hash of a request's content. It is comparable.
//
// Two requests with one key are duplicates if their fingerprints are equal, and a
// conflict otherwise. The hash must cover all input with an influence on the effect, but
// no input that changes between retries.
type Fingerprint struct {
	// Spec names the computation of Sum: 1 to [MaxSpec] printable ASCII characters
	// without a space. Change Spec whenever the computation changes. Sums under different
	// specs are never compared: see [DecisionIncomparable].
	Spec string

	// Sum is the SHA-256 of the request's content. Spec determines the hashed fields and
	// their encoding.
	Sum [sha256.Size]byte
}

// FingerprintOf returns a fingerprint with the given Spec. Its Sum is the SHA-256 of the
// parts, each preceded by its length as eight bytes in big-endian order. The spec itself
// is not part of the hash.
func FingerprintOf(spec string, parts ...[]byte) Fingerprint {
	return Fingerprint{Spec: spec, Sum: sum(parts...)}
}

// String returns the spec and the first eight bytes of Sum in hexadecimal.
func (f Fingerprint) String() string { return f.Spec + ":" + hex.EncodeToString(f.Sum[:8]) }

func (f Fingerprint) check() error {
	switch {
	case f.Spec == "":
		return &InvalidError{Field: "Fingerprint.Spec", Rule: "empty; name the computation and its version, so that a later version is not taken for another payload"}
	case len(f.Spec) > MaxSpec:
		return &InvalidError{Field: "Fingerprint.Spec", Rule: fmt.Sprintf("%d bytes, want at most %d", len(f.Spec), MaxSpec)}
	case f.Sum == [sha256.Size]byte{}:
		return &InvalidError{Field: "Fingerprint.Sum", Rule: "zero; without a fingerprint a key that is reused for another payload looks like a duplicate, use FingerprintOf"}
	}
	for i := range len(f.Spec) {
		if c := f.Spec[i]; c <= ' ' || c > '~' {
			return &InvalidError{Field: "Fingerprint.Spec", Rule: fmt.Sprintf("byte %#02x at position %d, want printable ASCII without a space", c, i)}
		}
	}
	return nil
}

// ExactHash is a hash of a request's exact body and group: see [ExactHashOf]. The zero
// ExactHash means no seal.
//
// If a claim has the key and the [Fingerprint] of a record, but another ExactHash, it is the
// same request in other bytes, usually another encoding. Stores then set [Outcome.Drift],
// unless one of the two hashes is zero.
type ExactHash [sha256.Size]byte

// ExactHashOf returns the SHA-256 of body and group, each preceded by its length as eight
// bytes in big-endian order.
func ExactHashOf(body []byte, group string) ExactHash { return sum(body, []byte(group)) }

func sum(parts ...[]byte) [sha256.Size]byte {
	h := sha256.New()
	var length [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write(p)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
