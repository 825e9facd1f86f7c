package lint

import (
	"fmt"
	"slices"
	"strings"
)

// Severity says what a finding costs. The zero value is [Error], so that a
// finding built by hand without one is refused rather than overlooked.
type Severity uint8

const (
	// Error: the message loses events, breaks the contract or is refused by
	// SQS. A producer that enforces the rules does not send it.
	Error Severity = iota

	// Warning: the message can be sent and does what it says, but a reader of
	// the code should look.
	Warning

	// Info: nothing is lost on this queue today; the finding says what a
	// change of the queue or of the consumer would break.
	Info
)

// String returns "error", "warning" or "info".
func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	case Info:
		return "info"
	}
	return fmt.Sprintf("Severity(%d)", uint8(s))
}

// MarshalText returns what String does, the form of a severity in JSON.
func (s Severity) MarshalText() ([]byte, error) {
	if s > Info {
		return nil, fmt.Errorf("lint: %v is no severity", s)
	}
	return []byte(s.String()), nil
}

// UnmarshalText takes what MarshalText returns, and nothing else.
func (s *Severity) UnmarshalText(text []byte) error {
	for known := Error; known <= Info; known++ {
		if known.String() == string(text) {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("lint: %q is no severity; there are error, warning and info", text)
}

// Rule is one row of the rule table. The table is shared by every pass: an ID
// means the same rule wherever it is reported.
type Rule struct {
	// ID is stable: "SF" and three digits. An ID is never given to another
	// rule, so it may be kept in suppressions and dashboards.
	ID string

	// Name is a few words in kebab case, as stable as the ID.
	Name string

	// Severity is that of the rule's findings unless Wording names an
	// exception; [Finding.Severity] decides.
	Severity Severity

	// Title is the rule in one line, without a full stop.
	Title string

	// Wording is the rule in full: what is required and what breaks without it.
	Wording string

	// Source is where the rule comes from: a section of the KFM contract, an
	// RFC, or the number of an observed fact about SQS (F-xxx).
	Source string

	// Fix is the way out where a finding has none that is closer to the case.
	Fix string

	// Passes are the places at which the rule is decided.
	Passes Passes

	// Since is the version of this module that has the rule first, as in "0.1.0".
	Since string

	// Bad breaks the rule and Good does not: a few lines each, in Go or, of what
	// stands in a body, JSON.
	Bad, Good string
}

// Passes are the places at which a rule is decided, one or several.
type Passes uint8

const (
	// OnMessage: [Check] decides the rule, on one message that goes out.
	OnMessage Passes = 1 << iota

	// OnStream: [Stream] decides it, on a message and those before it.
	OnStream

	// OnSource: package fifovet or the command "sqsfifo vet" decides it, on Go
	// source.
	OnSource
)

// Has reports whether p has all of q.
func (p Passes) Has(q Passes) bool { return p&q == q }

// String returns the passes by name, as in "message, source".
func (p Passes) String() string {
	var names []string
	for i, name := range [...]string{"message", "stream", "source"} {
		if p.Has(1 << i) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// Rules returns every rule, sorted by ID. The slice is the caller's own.
func Rules() []Rule {
	return slices.Clone(rules)
}

// rules is every rule, sorted by ID, and never written to: Lookup searches it by
// halves and Check reads it from any goroutine.
var rules = sorted(messageRules, streamRules, sourceRules)

func sorted(of ...[]Rule) []Rule {
	all := slices.Concat(of...)
	slices.SortFunc(all, func(a, b Rule) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Lookup returns the rule with the given ID, which is case-sensitive, and
// whether there is one.
func Lookup(id string) (Rule, bool) {
	i, ok := slices.BinarySearchFunc(rules, id, func(r Rule, id string) int {
		return strings.Compare(r.ID, id)
	})
	if !ok {
		return Rule{}, false
	}
	return rules[i], true
}

// The IDs below 020 belong to rules that have a form on Go source, and some of
// them on messages, too; 02x to whole packages; 03x to the body's bytes, 04x to the
// envelope, 05x to what SQS takes, 06x to what goes before a message.
const (
	attrOnlyIdentity   = "SF001"
	nondeterministicID = "SF002"
	constantID         = "SF003"
	constantBody       = "SF004"
	entityKey          = "SF005"
	remintedOnRetry    = "SF006"
	randomGroupID      = "SF007"
	rawSendBypass      = "SF008"
	missingGroupID     = "SF009"
	invalidID          = "SF010"
	fifoDelay          = "SF011"
	volatileBody       = "SF012"
	attrCopiesKey      = "SF013"
	sharedConstantKey  = "SF014"
	noComplianceTest   = "SF020"
	invalidJSON        = "SF030"
	duplicateName      = "SF031"
	inexactInteger     = "SF032"
	notCanonical       = "SF033"
	envelopeMembers    = "SF040"
	oldEnvelope        = "SF041"
	invalidEventID     = "SF042"
	invalidEventSource = "SF043"
	invalidEventTime   = "SF044"
	invalidDedupeKey   = "SF045"
	invalidPayload     = "SF046"
	tooLarge           = "SF050"
	refusedCharacter   = "SF051"
	tooManyAttributes  = "SF052"
	invalidAttribute   = "SF053"
	bodyWithOtherAttr  = "SF060"
	keyReused          = "SF061"
	eventIDReused      = "SF062"
	bodyInOtherGroup   = "SF063"
	dedupIDReused      = "SF064"
)
