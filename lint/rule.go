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
}

// Rules returns every rule, sorted by ID. The slice is the caller's own.
func Rules() []Rule {
	return slices.Clone(rules)
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

// The IDs below 030 belong to rules that have a form on Go source, too; those
// from 030 on can only be decided on the message itself: 03x the body's bytes,
// 04x the envelope, 05x what SQS takes.
const (
	attrOnlyIdentity   = "SF001"
	missingGroupID     = "SF009"
	invalidID          = "SF010"
	fifoDelay          = "SF011"
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
)

// rules is sorted by ID and never written to: Lookup searches it by halves and
// Check reads it from any goroutine.
var rules = []Rule{
	{
		ID: attrOnlyIdentity, Name: "attr-only-identity", Severity: Error,
		Title: "what identifies the event stands in an attribute and not in the body",
		Wording: "An attribute whose name says that it identifies the event (unique_key, event_id, a UUID) repeats a value of the body: " +
			"a string, a number or a boolean at any depth, or a component of dedupe_key. SQS deduplicates on the body alone, so two " +
			"messages that differ only in an attribute become one and the second is dropped with an answer that says success. " +
			"Where an explicit deduplication ID other than the hash of the body keeps the two apart, the finding is an info: " +
			"a consumer still cannot check the identity against the body.",
		Source: "KFM v11.2.3, sections 3 to 5 (RC-2.4.1); F-011 to F-014",
		Fix:    "put the value into the body, as dedupe_key or a component of it, and keep the attribute only as a copy",
	},
	{
		ID: missingGroupID, Name: "missing-group-id", Severity: Error,
		Title:   "the message has no group ID",
		Wording: "A message for a FIFO queue has a MessageGroupId. SQS refuses it otherwise, and with it the whole batch that it came in.",
		Source:  "F-050, F-070",
		Fix:     "set MessageGroupId to what has to stay in order: an account, a tile, a dataset",
	},
	{
		ID: invalidID, Name: "invalid-id", Severity: Error,
		Title: "a group ID or deduplication ID that SQS refuses",
		Wording: "MessageGroupId and an explicit MessageDeduplicationId have 1 to 128 characters, each an ASCII letter, digit or punctuation mark. " +
			"Blanks, control characters and anything beyond ASCII are refused.",
		Source: "F-017, F-018",
		Fix:    "use a short ASCII identifier without blanks, or the lower-case hex SHA-256 of the longer one",
	},
	{
		ID: fifoDelay, Name: "fifo-delay", Severity: Error,
		Title: "a delay of its own on a FIFO message",
		Wording: "DelaySeconds of a message for a FIFO queue is 0. SQS knows a delay there for the queue as a whole only; " +
			"it refuses the message, and with it the whole batch that it came in.",
		Source: "F-052, F-074 to F-076",
		Fix:    "leave DelaySeconds at 0 and set it on the queue",
	},
	{
		ID: invalidJSON, Name: "invalid-json", Severity: Error,
		Title: "the body is no JSON text that has a canonical form",
		Wording: "The body is one JSON text in UTF-8 without a byte order mark, lone surrogates, numbers beyond the range of a double, " +
			"or anything after it. What one parser repairs another repairs differently, and SQS hashes the bytes as they are.",
		Source: "KFM v11.2.3, section 4; RFC 8259; RFC 8785, section 3.1",
		Fix:    "build the body with canonicaljson, never by joining strings",
	},
	{
		ID: duplicateName, Name: "duplicate-name", Severity: Error,
		Title: "an object of the body has a member twice",
		Wording: "No object of the body has two members of one name. Readers differ on which of them counts, so the event that was hashed " +
			"need not be the event that is read.",
		Source: "RFC 8785, section 3.1; RFC 7493, section 2.3",
		Fix:    "write each member once",
	},
	{
		ID: inexactInteger, Name: "inexact-integer", Severity: Error,
		Title: "an integer of the body that a double does not hold",
		Wording: "An integer of the body keeps its value as an IEEE 754 double. RFC 8785 would round it, which gives two different integers the " +
			"same bytes: two events could share one body, and SQS would drop the second.",
		Source: "RFC 8785, appendix D; RFC 7493, section 2.2",
		Fix:    "write the integer as a JSON string",
	},
	{
		ID: notCanonical, Name: "not-canonical", Severity: Error,
		Title: "the body is not in canonical form",
		Wording: "The body is its own RFC 8785 form, byte for byte: members sorted, no blanks, one spelling for each string and number. " +
			"SQS compares hashes of bytes; the same event written in another way is another message to it, and a retry is stored twice.",
		Source: "KFM v11.2.3, section 4; RFC 8785, section 3.2; F-024",
		Fix:    "pass the body through canonicaljson.CanonicalizeStrict before it is stored or sent",
	},
	{
		ID: envelopeMembers, Name: "envelope-members", Severity: Error,
		Title: "the body is not the envelope with exactly its five members",
		Wording: "The body is a JSON object with the members dedupe_key, event_id, event_source, event_time and payload, and no other. " +
			"A member beside them would be part of the hash without being part of the contract.",
		Source: "KFM v11.2.3, section 4",
		Fix:    "build the body as an envelope and put everything else into payload",
	},
	{
		ID: oldEnvelope, Name: "old-envelope", Severity: Error,
		Title: "the body is an envelope of KFM v10.3.1",
		Wording: "The body follows the contract of v11.2.3. The envelope of v10.3.1, with event_type, dataset_id, version, source_uri " +
			"and idempotency_key at top level, is no longer one.",
		Source: "KFM v10.3.1, key specification; KFM v11.2.3, section 4",
		Fix:    "move idempotency_key into dedupe_key and the other members into payload",
	},
	{
		ID: invalidEventID, Name: "event-id", Severity: Error,
		Title: "event_id is no lower-case UUIDv7",
		Wording: "event_id is a UUID of version 7 and of the RFC 9562 variant, in lower case with hyphens. It is part of the hashed body: " +
			"a second spelling, or a new ID for each attempt, makes a retry a new message.",
		Source: "KFM v11.2.3, section 4; RFC 9562, sections 4.1 and 5.7",
		Fix:    "derive event_id from the event, or store the UUIDv7 with the event and send the stored one",
	},
	{
		ID: invalidEventSource, Name: "event-source", Severity: Error,
		Title: "event_source is not kfm.<domain>.<pipeline>",
		Wording: "event_source has exactly three labels joined by dots, the first of which is kfm. A label is made of lower-case ASCII letters, digits " +
			"and hyphens, is not empty, and neither begins nor ends with a hyphen.",
		Source: "KFM v11.2.3, section 4",
		Fix:    "use a source such as kfm.remote-sensing.landsat-refresh",
	},
	{
		ID: invalidEventTime, Name: "event-time", Severity: Error,
		Title: "event_time is not RFC 3339 in UTC with the shortest fraction",
		Wording: "event_time is the instant at which the event occurred, in RFC 3339 with an upper-case T and Z, with at most nine digits of a second's " +
			"fraction and no trailing zero among them. One instant has one spelling, or the retry of an event would have another hash. " +
			"0001-01-01T00:00:00Z, the zero value of a clock that was never set, is no instant of an event.",
		Source: "KFM v11.2.3, section 4; RFC 3339, section 5.6",
		Fix:    "format the event's own time, never the clock's, with time.RFC3339Nano in UTC",
	},
	{
		ID: invalidDedupeKey, Name: "dedupe-key", Severity: Error,
		Title: "dedupe_key is empty, too long or not plain text",
		Wording: "dedupe_key is a string of 1 to 1,024 bytes of valid UTF-8 without control characters. It is what tells two events apart, " +
			"and people search logs for it.",
		Source: "KFM v11.2.3, section 4",
		Fix:    "join the identifiers of the event into a short key, or use their SHA-256",
	},
	{
		ID: invalidPayload, Name: "payload", Severity: Error,
		Title:   "payload is no JSON object",
		Wording: "payload is a JSON object, which may be empty. A bare string, number or array leaves no room for a second field.",
		Source:  "KFM v11.2.3, section 4",
		Fix:     "wrap the value in an object",
	},
	{
		ID: tooLarge, Name: "too-large", Severity: Error,
		Title: "the message is larger than the queue takes",
		Wording: "The bytes of the body and of each attribute's name, data type and value together do not exceed the queue's MaximumMessageSize, " +
			"1,048,576 bytes at most. System attributes do not count.",
		Source: "F-073",
		Fix:    "store the payload elsewhere and send its address and checksum",
	},
	{
		ID: refusedCharacter, Name: "refused-character", Severity: Error,
		Title: "the body has a character that SQS refuses",
		Wording: "The body holds only U+0009, U+000A, U+000D, U+0020 to U+D7FF, U+E000 to U+FFFD and U+10000 to U+10FFFF. " +
			"In canonical JSON that leaves U+FFFE and U+FFFF to be refused: control characters are escaped there, these two are not.",
		Source: "F-072",
		Fix:    "remove the character from the event, or carry the text in base64",
	},
	{
		ID: tooManyAttributes, Name: "too-many-attributes", Severity: Error,
		Title:   "more than ten message attributes",
		Wording: "A message has at most 10 attributes, trace context included.",
		Source:  "F-079",
		Fix:     "move what is not a routing hint into payload",
	},
	{
		ID: invalidAttribute, Name: "invalid-attribute", Severity: Error,
		Title: "an attribute that SQS refuses",
		Wording: "An attribute's name has 1 to 256 letters, digits, underscores, hyphens and dots, does not begin or end with a dot and does not begin " +
			"with AWS. or Amazon. in any case. Its data type is String, Number or Binary, alone or with a suffix after a dot, at most 256 characters. " +
			"Its value is not empty, stands in the one field that belongs to the type, and is held to the characters of the body where it is text.",
		Source: "F-072, F-077, F-078",
		Fix:    "correct the attribute, or leave it out",
	},
}
