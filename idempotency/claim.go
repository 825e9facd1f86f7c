package idempotency

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Forever is the longest duration. A record with the TTL Forever never expires. For
// [Terms.ResendFor], Forever means that a second run is safe at any time.
const Forever time.Duration = math.MaxInt64

// MaxBatch is the largest number of claims in one call of the method ClaimBatch of a
// [Store].
const MaxBatch = 64

// Token identifies a claimant of one operation. Use a new token for each operation, never
// one token for a whole process.
//
// A claimant that repeats a claim with the same token, for example after a lost answer,
// gets the same claim again ([DecisionRenewed]).
type Token [16]byte

// NewToken returns a random token.
func NewToken() (t Token) {
	_, _ = rand.Read(t[:]) // never fails (crypto/rand)
	return t
}

// A token of NewTokenOf has three parts:
//
//   - the bytes before ownerEnd: the start of the SHA-256 of the owner
//   - the bytes from ownerEnd to sessionEnd: the start time of the process in
//     milliseconds
//   - the other bytes: random
const (
	ownerEnd   = 6
	sessionEnd = 12
)

// NewTokenOf returns a random token that also identifies an owner and one process of this
// owner. Two tokens of one process differ, so two claimants in one process never share a
// claim.
//
// The parameter `owner` is a process name that survives restarts, for example a host name.
// The parameter `began` is the start time of the process.
//
// After a restart, the new process need not wait for the leases of its predecessor. A
// store treats the lease of an earlier process of the same owner as ended, because the
// earlier process cannot run any more. See [Token.Succeeds].
func NewTokenOf(owner string, began time.Time) Token {
	t := NewToken()
	name := sha256.Sum256([]byte(owner))
	copy(t[:ownerEnd], name[:])
	var session [8]byte
	binary.BigEndian.PutUint64(session[:], uint64(max(began.UnixMilli(), 0)))
	copy(t[ownerEnd:sessionEnd], session[2:])
	return t
}

// Succeeds reports whether the process of t replaced the process of the token `other`:
// both tokens have the same owner, and the process of t started later. See [NewTokenOf].
func (t Token) Succeeds(other Token) bool {
	return bytes.Equal(t[:ownerEnd], other[:ownerEnd]) && bytes.Compare(other[ownerEnd:sessionEnd], t[ownerEnd:sessionEnd]) < 0
}

// String returns the token in hexadecimal.
func (t Token) String() string { return hex.EncodeToString(t[:]) }

// Terms are the durations of a claim and its record. [Policy.Terms] returns checked
// terms.
type Terms struct {
	// Lease is the claimant's working time before another claimant may take over: at
	// least a millisecond, at most TTL.
	Lease time.Duration

	// TTL is the lifetime of the record, from its creation. A record with a TTL of
	// [Forever] never expires.
	TTL time.Duration

	// ResendFor is the time after the first attempt in which a second run is safe, for
	// example because the operation's target still recognises a repetition. 0 means
	// never, [Forever] means always.
	//
	// A claim granted as [DecisionNew] stores the end of this time in [Record.ResendUntil].
	// Claims granted as [DecisionRenewed] or [DecisionReclaimed] do not change ResendUntil.
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

	// Body and Group are the request: for SQS, the message body and the message group. If
	// set, the store keeps them with the record. Group holds at most [MaxGroup] bytes,
	// Body at most [MaxBody].
	//
	// After a grant, run the operation with the Body and Group in [Outcome.Record]. If an
	// earlier attempt may have taken effect, the record has the bytes of the earlier
	// attempt.
	//
	// ExactHash is optional: the hash of Body and Group (see [ExactHashOf]). If the record has
	// another ExactHash, the store sets [Outcome.Drift].
	ExactHash ExactHash
	Group     string
	Body      []byte

	Terms Terms

	// Resend accepts that the operation may take effect twice: the claim is granted where
	// the decision would otherwise be [DecisionUnresolved].
	//
	// Set Resend after a person's decision, or for a policy that prefers a second run to
	// no run.
	Resend bool

	Dataset Dataset
}

// Check returns nil, or an [*InvalidError] naming the invalid field. Stores check each
// claim first.
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

// CheckBatch checks the size of a batch and each claim. The [*InvalidError] names the
// invalid claim.
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
