package lint

import (
	"fmt"
	"slices"
	"strings"
)

// Severity is the severity of a finding. The zero value is [Error]: if code forgets to
// set the severity, the message is refused, and the finding is seen.
type Severity uint8

const (
	// Error: SQS refuses the message or drops an event, or the message breaks the
	// contract. With enforced rules, a producer does not send the message.
	Error Severity = iota

	// Warning: the message can be sent, but a person should read the code.
	Warning

	// Info: no event is lost today. After a change of the queue or of the consumer, events
	// could be lost.
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

// MarshalText returns the result of String, the form of a severity in JSON.
func (s Severity) MarshalText() ([]byte, error) {
	if s > Info {
		return nil, fmt.Errorf("lint: %v is not a severity", s)
	}
	return []byte(s.String()), nil
}

// UnmarshalText accepts exactly the results of MarshalText.
func (s *Severity) UnmarshalText(text []byte) error {
	for known := Error; known <= Info; known++ {
		if known.String() == string(text) {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("lint: %q is not a severity: use error, warning or info", text)
}

// Rule is one row of the rule table. The checks of messages, of streams and of source
// share the table, so an ID means the same rule everywhere.
type Rule struct {
	// ID is "SF" and three digits. An ID is never reused for another rule, so code comments
	// and dashboards can refer to it.
	ID string

	// Name is a few words in kebab case. A Name never changes.
	Name string

	// Severity is the usual severity of the rule's findings. The field Wording says which
	// findings have another severity (see [Finding.Severity]).
	Severity Severity

	// Title is the rule in one line, without a full stop.
	Title string

	// Wording is the whole rule: the requirement, and the damage if it is not met.
	Wording string

	// Source is the origin of the rule: a section of the KFM contract, an RFC, or the
	// number of an observed fact about SQS (F-xxx).
	Source string

	// Fix describes the change that removes a violation. The Fix of a [Finding] may be more
	// specific.
	Fix string

	// Passes says whether the rule is checked on messages, on streams or on Go source.
	Passes Passes

	// Since is the first version of this module with the rule, such as "0.1.0".
	Since string

	// Bad is an example that breaks the rule, and Good is one that keeps the rule. Each has
	// a few lines of Go or, for a body, of JSON.
	Bad, Good string
}

// Passes is the set of checks that apply a rule: [OnMessage], [OnStream] and [OnSource].
type Passes uint8

const (
	// OnMessage: [Check] applies the rule to each outgoing message.
	OnMessage Passes = 1 << iota

	// OnStream: [QueueChecker] applies the rule to each message together with earlier messages.
	OnStream

	// OnSource: package fifovet or the command "sqsfifo vet" applies the rule to Go source.
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

// Rules returns every rule, sorted by ID. The caller owns the slice.
func Rules() []Rule {
	return slices.Clone(rules)
}

// rules has every rule, sorted by ID for the binary search of Lookup. Several
// goroutines read rules; no code writes it.
var rules = sorted(messageRules, streamRules, sourceRules)

func sorted(of ...[]Rule) []Rule {
	all := slices.Concat(of...)
	slices.SortFunc(all, func(a, b Rule) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Lookup returns the rule with the given ID, case-sensitive, and whether it exists.
func Lookup(id string) (Rule, bool) {
	i, ok := slices.BinarySearchFunc(rules, id, func(r Rule, id string) int {
		return strings.Compare(r.ID, id)
	})
	if !ok {
		return Rule{}, false
	}
	return rules[i], true
}

// RefusedBySQS reports whether SQS itself refuses every message that breaks the rule. It is
// useless to retry such a message, or to send it in spite of the finding.
func RefusedBySQS(id string) bool {
	switch id {
	case missingGroupID, invalidID, fifoDelay, tooLarge, refusedCharacter, tooManyAttributes, invalidAttribute:
		return true
	default:
		return false
	}
}

// The IDs of the rules are grouped by subject:
//
//   - SF001 to SF019: Go source, and for some rules also messages
//   - SF020 to SF029: whole packages
//   - SF030 to SF039: the bytes of the body
//   - SF040 to SF049: the envelope
//   - SF050 to SF059: limits of SQS
//   - SF060 to SF069: a message compared with earlier messages
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
	unreadFailures     = "SF015"
	oneIDTwoBodies     = "SF016"
	unflushedProducer  = "SF017"
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
	unknownDataset     = "SF047"
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
