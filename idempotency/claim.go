package idempotency

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Forever is a TTL of records that never expire, and a ResendFor of operations that
// may run again at any time.
const Forever time.Duration = math.MaxInt64

// MaxBatch is the largest number of claims in one [Store] call ClaimBatch.
const MaxBatch = 64

// Token identifies a claimant of one operation. A claim that is repeated with its
// token, for example because its answer was lost, finds itself ([Renewed]). Use a
// new token for each operation, never one for a whole process.
type Token [16]byte

// NewToken returns a random token.
func NewToken() (t Token) {
	_, _ = rand.Read(t[:]) // never fails (crypto/rand)
	return t
}

// String returns the token in hexadecimal.
func (t Token) String() string { return hex.EncodeToString(t[:]) }

// Terms say how long a claim and its record last. [Policy.Terms] returns checked ones.
type Terms struct {
	// Lease is how long the claimant may work before others may take over: at least a
	// millisecond, at most TTL.
	Lease time.Duration

	// TTL is how long the record is kept, from its creation. [Forever] is never.
	TTL time.Duration

	// ResendFor is how long, from the first attempt, the operation may run again
	// although the outcome of an earlier attempt is unknown, because its target
	// recognises the repetition. 0 is not at all, [Forever] is always. It is stored
	// with the record; a later claimant with other terms does not change it.
	ResendFor time.Duration
}

func (t Terms) check() error {
	switch {
	case t.Lease < time.Millisecond:
		return &InvalidError{Field: "Terms.Lease", Rule: fmt.Sprintf("%v, want at least 1ms; it must cover one run of the operation", t.Lease)}
	case t.TTL <= 0:
		return &InvalidError{Field: "Terms.TTL", Rule: fmt.Sprintf("%v, want more than 0; use Forever for records that never expire", t.TTL)}
	case t.Lease > t.TTL:
		return &InvalidError{Field: "Terms.Lease", Rule: fmt.Sprintf("%v is longer than the TTL of %v; a claim must not outlive its record", t.Lease, t.TTL)}
	case t.ResendFor < 0:
		return &InvalidError{Field: "Terms.ResendFor", Rule: fmt.Sprintf("%v, want 0 or more", t.ResendFor)}
	}
	return nil
}

// Claim asks for the right to run an operation.
type Claim struct {
	Key         Key
	Token       Token
	Fingerprint Fingerprint

	// Seal, Group and Body describe the bytes that the operation will be carried
	// out with, if they are to be stored. Group holds at most [MaxGroup] bytes and
	// Body at most [MaxBody]. The claimant must use those of the returned record.
	Seal  Seal
	Group string
	Body  []byte

	Terms Terms

	// RunAgain claims an operation whose outcome is unknown and that is not safe to
	// repeat ([Indeterminate]): the choice of an operator, or of a policy that prefers
	// a second run to none.
	RunAgain bool

	Dataset Dataset
}

// Check returns an [*InvalidError] that names the field that breaks its rule, or nil.
// Stores check each claim before they begin.
func (c Claim) Check() error {
	if err := c.Key.Check(); err != nil {
		return err
	}
	if c.Token == (Token{}) {
		return &InvalidError{Field: "Claim.Token", Rule: "zero; use NewToken"}
	}
	if err := c.Fingerprint.check(); err != nil {
		return err
	}
	if len(c.Group) > MaxGroup {
		return &InvalidError{Field: "Claim.Group", Rule: fmt.Sprintf("%d bytes, want at most %d", len(c.Group), MaxGroup)}
	}
	if len(c.Body) > MaxBody {
		return &InvalidError{Field: "Claim.Body", Rule: fmt.Sprintf("%d bytes, want at most %d; store it elsewhere and its address here", len(c.Body), MaxBody)}
	}
	if err := c.Terms.check(); err != nil {
		return err
	}
	return c.Dataset.Check()
}

// CheckBatch checks the size of a batch and each of its claims. The [*InvalidError]
// says which claim is wrong.
func CheckBatch(claims []Claim) error {
	if len(claims) > MaxBatch {
		return &InvalidError{Field: "claims", Rule: fmt.Sprintf("%d, want at most %d; claim the rest in another batch", len(claims), MaxBatch)}
	}
	for i, c := range claims {
		if err := c.Check(); err != nil {
			if invalid, ok := err.(*InvalidError); ok {
				at := *invalid
				at.Field = fmt.Sprintf("claims[%d].%s", i, at.Field)
				return &at
			}
			return err
		}
	}
	return nil
}

func checkText(field, s string, limit int) error {
	switch {
	case len(s) > limit:
		return &InvalidError{Field: field, Rule: fmt.Sprintf("%d bytes, want at most %d", len(s), limit)}
	case !utf8.ValidString(s):
		return &InvalidError{Field: field, Rule: "not UTF-8; use text"}
	case strings.IndexByte(s, 0) >= 0:
		return &InvalidError{Field: field, Rule: fmt.Sprintf("NUL at position %d; use text without it", strings.IndexByte(s, 0))}
	}
	return nil
}
