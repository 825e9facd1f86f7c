package ledger_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
)

// A hidden scope depends on the secret; a hidden value also depends on the scope. Scope
// and value are not just concatenated: "tenant" with "p-1" differs from "tenantp" with
// "-1".
func TestHide(t *testing.T) {
	one, two := bytes.Repeat([]byte{1}, ledger.MinSecret), bytes.Repeat([]byte{2}, ledger.MinSecret)
	k := idempotency.Key{Scope: "tenant", Operation: "pay", Value: "p-1"}
	h := ledger.Hide(one, k)
	if h != ledger.Hide(one, k) || h.Scope != ledger.HideScope(one, "tenant") || h.Operation != "pay" || h.Check() != nil {
		t.Errorf("got %+v", h)
	}
	mac := hmac.New(sha256.New, one)
	mac.Write([]byte("\x00\x00\x00\x00\x00\x00\x00\x16sqsfifo ledger scope 1\x00\x00\x00\x00\x00\x00\x00\x06tenant"))
	if want := "hmac-sha256:" + hex.EncodeToString(mac.Sum(nil)); h.Scope != want {
		t.Errorf("the scope is %s, want %s", h.Scope, want)
	}
	seen := map[string]bool{}
	for _, secret := range [][]byte{one, two} {
		for _, k := range []idempotency.Key{k, {Scope: "tenantp", Value: "-1"}, {Scope: "p-1", Value: "tenant"}, {Scope: "", Value: ""}} {
			h := ledger.Hide(secret, k)
			for _, s := range []string{h.Scope, h.Value} {
				if seen[s] || strings.Contains(s, "tenant") {
					t.Errorf("%s twice, or in clear", s)
				}
				seen[s] = true
			}
		}
	}
	var invalid *idempotency.InvalidError
	if err := ledger.CheckSecret([]byte("fifteen letters")); !errors.As(err, &invalid) || strings.Contains(err.Error(), "letters") {
		t.Errorf("got %v, want an InvalidError without the secret", err)
	}
	if err := ledger.CheckSecret(one); err != nil {
		t.Error(err)
	}
}
