package idempotency

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

// Size limits of [Key] parts, in bytes.
const (
	MaxScope     = 512
	MaxOperation = 128
	MaxValue     = 2048
)

// Key identifies one logical operation. Two requests with equal keys are the same
// operation or a conflict; requests with different keys never affect each other. A Key is
// comparable.
type Key struct {
	// Scope is the tenant, client or queue of the key: 1 to [MaxScope] bytes, any bytes.
	// Equal values in different scopes are different keys.
	//
	// Take the scope from an authenticated identity, never from the request itself. Use
	// [JoinScope] for a scope of several parts.
	Scope string

	// Operation names the kind of operation, for example "payments.create". It holds 1 to
	// [MaxOperation] printable ASCII characters without a space.
	Operation string

	// Value is the caller's key, or a hash of the operation's unique properties. It holds
	// 1 to [MaxValue] bytes, any bytes.
	Value string
}

// KeyID is the fixed-size name of a [Key] in a store.
type KeyID [sha256.Size]byte

// String returns the ID in hexadecimal.
func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

// ID returns the SHA-256 of the key's parts, each preceded by its length as eight bytes
// in big-endian order. Different keys have different IDs. A key's ID never changes
// between versions of this package.
func (k Key) ID() KeyID {
	b := make([]byte, 0, 24+len(k.Scope)+len(k.Operation)+len(k.Value))
	for _, part := range []string{k.Scope, k.Operation, k.Value} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	}
	return sha256.Sum256(b)
}

// Check returns nil, or an [*InvalidError] naming the invalid part of the key.
func (k Key) Check() error {
	switch {
	case k.Scope == "":
		return &InvalidError{Field: "Key.Scope", Rule: "empty; a key without a scope would collide with those of other tenants, use the authenticated client or tenant"}
	case len(k.Scope) > MaxScope:
		return &InvalidError{Field: "Key.Scope", Rule: fmt.Sprintf("%d bytes, want at most %d; use a hash of it", len(k.Scope), MaxScope)}
	case k.Operation == "":
		return &InvalidError{Field: "Key.Operation", Rule: `empty; name the kind of operation, for example "payments.create"`}
	case len(k.Operation) > MaxOperation:
		return &InvalidError{Field: "Key.Operation", Rule: fmt.Sprintf("%d bytes, want at most %d; use a shorter name", len(k.Operation), MaxOperation)}
	case k.Value == "":
		return &InvalidError{Field: "Key.Value", Rule: "empty; all requests without a key would be one operation"}
	case len(k.Value) > MaxValue:
		return &InvalidError{Field: "Key.Value", Rule: fmt.Sprintf("%d bytes, want at most %d; use a hash of it", len(k.Value), MaxValue)}
	}
	for i := range len(k.Operation) {
		if c := k.Operation[i]; c <= ' ' || c > '~' {
			return &InvalidError{Field: "Key.Operation", Rule: fmt.Sprintf("byte %#02x at position %d, want printable ASCII without a space", c, i)}
		}
	}
	return nil
}

// JoinScope joins several parts into one scope with ":". A ":" or "%" within a part is
// percent-encoded, so different parts never give the same scope. For example, ("a:b",
// "c") and ("a", "b:c") give different scopes. An empty part is kept.
func JoinScope(parts ...string) string {
	escaped := make([]string, len(parts))
	for i, p := range parts {
		escaped[i] = scopeEscaper.Replace(p)
	}
	return strings.Join(escaped, ":")
}

var scopeEscaper = strings.NewReplacer("%", "%25", ":", "%3A")
