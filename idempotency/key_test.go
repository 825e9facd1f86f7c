package idempotency_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

func ExampleJoinScope() {
	fmt.Println(idempotency.JoinScope("platform-7", "agent:3"))
	fmt.Println(idempotency.JoinScope("platform-7:agent", "3"))
	// Output:
	// platform-7:agent%3A3
	// platform-7%3Aagent:3
}

// A key's ID must never change, because it is the primary key of stored records. The
// expected value was computed without this package, with printf and sha256sum.
func TestKeyIDIsStable(t *testing.T) {
	k := idempotency.Key{Scope: "tenant", Operation: "pay", Value: "1"}
	const want = "3a05779206aff79b09e8ed36459ad8a61ea3f7f1ccd98b2328db238aea979429"
	if got := k.ID().String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestKeysWithOtherPartsHaveOtherIDs(t *testing.T) {
	seen := map[idempotency.KeyID]idempotency.Key{}
	texts := []string{"", "a", "aa", "b", "ab", "\x00", "a\x00", "\x00a", "a:b", "\x01"}
	for _, s := range texts {
		for _, o := range texts {
			for _, v := range texts {
				k := idempotency.Key{Scope: s, Operation: o, Value: v}
				if other, ok := seen[k.ID()]; ok {
					t.Errorf("%q and %q have one ID", k, other)
				}
				seen[k.ID()] = k
			}
		}
	}
}

func TestKeyCheck(t *testing.T) {
	good := idempotency.Key{Scope: "\x00\xff", Operation: "a.b/c:d", Value: strings.Repeat("\x00", idempotency.MaxValue)}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for field, k := range map[string]idempotency.Key{
		"Key.Scope":     {Operation: "o", Value: "v"},
		"Key.Operation": {Scope: "s", Operation: "a\nb", Value: "v"},
		"Key.Value":     {Scope: "s", Operation: "o", Value: strings.Repeat("x", idempotency.MaxValue+1)},
	} {
		var invalid *idempotency.InvalidError
		if err := k.Check(); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("got %v, want an InvalidError about %s", err, field)
		}
	}
}

func FuzzJoinScope(f *testing.F) {
	f.Add("a:b", "c", "a", "b:c")
	f.Add("%3A", "", ":", "")
	f.Add("", "", "", ":")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		if (a != c || b != d) && idempotency.JoinScope(a, b) == idempotency.JoinScope(c, d) {
			t.Errorf("(%q, %q) and (%q, %q) give one scope", a, b, c, d)
		}
	})
}
