package ledger

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// MinSecret is the smallest length of a secret in bytes.
const MinSecret = 16

// hiddenPrefix begins each hidden scope and value.
const hiddenPrefix = "hmac-sha256:"

// CheckSecret returns nil, or an [*idempotency.InvalidError] for a secret that is too
// short. The error does not contain the secret.
func CheckSecret(secret []byte) error {
	if len(secret) < MinSecret {
		return &idempotency.InvalidError{Field: "secret", Rule: fmt.Sprintf("%d bytes, want at least %d random bytes", len(secret), MinSecret)}
	}
	return nil
}

// Hide returns the key as a store with this secret writes it to the ledger. Use Hide to
// find the entries of a known key. The scope and the value become "hmac-sha256:" and an
// HMAC-SHA-256 in hexadecimal. The operation is unchanged. Without the secret, a guess of
// a scope or value cannot be checked.
//
// The HMACs cover these texts, each preceded by its length in eight big-endian bytes:
//
//   - for the scope: "sqsfifo ledger scope 1" and the scope
//   - for the value: "sqsfifo ledger value 1", the scope and the value
//
// Equal values in different scopes therefore have different HMACs.
func Hide(secret []byte, k idempotency.Key) idempotency.Key {
	return idempotency.Key{
		Scope: HideScope(secret, k.Scope), Operation: k.Operation,
		Value: hidden(secret, "sqsfifo ledger value 1", k.Scope, k.Value),
	}
}

// HideScope returns the text that [Hide] puts in place of a scope. Use HideScope to find
// all entries of a known scope.
func HideScope(secret []byte, scope string) string {
	return hidden(secret, "sqsfifo ledger scope 1", scope)
}

func hidden(secret []byte, texts ...string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write(appendText(nil, texts...))
	return hiddenPrefix + hex.EncodeToString(mac.Sum(nil))
}
