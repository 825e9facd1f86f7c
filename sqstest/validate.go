package sqstest

// Deviations from AWS in this file:
//   - The order of the checks is not known (F-062). Here the FIFO parameters come first.
//   - If an entry of a batch has invalid contents, only this entry fails. AWS does so for
//     standard queues (F-058, F-059); for FIFO queues it is not known. With
//     Config.ContentsRefuseBatch, the whole batch is refused.
//   - AWS's error messages about attribute names, types and numbers were not recorded, nor
//     its refusal of the reserved members StringListValues and BinaryListValues.
//   - A body with invalid UTF-8 is refused as InvalidMessageContents. It cannot reach AWS,
//     because an SDK replaces the bad bytes.

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	minMessageBytes  = 1024
	maxMessageBytes  = 1 << 20 // for one message (F-073), and in total for a batch (F-057)
	minRetention     = 60
	maxRetention     = 14 * 24 * 60 * 60
	maxWaitSeconds   = 20 // of a long poll (F-102)
	maxReceiveCount  = 1000
	maxNameOfQueue   = 80  // characters (F-121)
	maxBatchEntries  = 10  // in one request (F-054)
	maxAttributes    = 10  // of one message (F-079)
	maxNameLength    = 256 // characters of an attribute's name (F-078)
	maxDelaySeconds  = 900 // of a message or a queue (F-074)
	maxVisibility    = 43200
	maxIDLength      = 128 // of a group or a deduplication ID (F-017)
	maxInFlight      = 120_000
	maxEntryIDLength = 80 // characters of a batch entry's ID (F-056)
)

// validateSend makes all checks of a single send. It returns an error, not an *apiError,
// because a nil *apiError would become a non-nil error in the caller.
func (s *settings) validateSend(e sendEntry) error {
	if aws.ToString(e.MessageBody) == "" {
		return missing("MessageBody") // for an absent and for an empty body (F-071)
	}
	if err := s.validateParameters(e, false); err != nil {
		return err
	}
	if err := s.validateContents(e.SendMessageBatchRequestEntry, false); err != nil {
		return err
	}
	return nil
}

// validateParameters makes the checks that depend on the type of the queue. For a missing
// group and a wrong delay, AWS answers a batch and a single send differently (F-050, F-052,
// F-070, F-074); the parameter `batch` selects the answer.
func (s *settings) validateParameters(e sendEntry, batch bool) *apiError {
	delay := aws.ToInt32(e.DelaySeconds)
	if (!batch || !s.fifo) && (delay < 0 || delay > maxDelaySeconds) {
		return invalidValue(delay, "DelaySeconds", "DelaySeconds must be >= 0 and <= 900.")
	}
	switch {
	case e.MessageGroupId == nil && !s.fifo:
	case e.MessageGroupId == nil && batch:
		return invalidParameterValue.because("The request must contain the parameter MessageGroupId.")
	case e.MessageGroupId == nil:
		return missing("MessageGroupId")
	default:
		if err := validateID("MessageGroupId", *e.MessageGroupId); err != nil {
			return err
		}
	}
	if e.MessageDeduplicationId != nil {
		if err := validateID("MessageDeduplicationId", *e.MessageDeduplicationId); err != nil {
			return err
		}
		// AWS's error text for this case was not recorded. The fake uses the text that AWS
		// has for DelaySeconds on a FIFO queue (F-074).
		if !s.fifo {
			return invalidValue(*e.MessageDeduplicationId, "MessageDeduplicationId", notForThisType)
		}
	} else if s.fifo && !s.contentBased {
		return invalidParameterValue.because("The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
	}
	if s.fifo && delay != 0 {
		return invalidValue(delay, "DelaySeconds", notForThisType)
	}
	return nil
}

const notForThisType = "The request include parameter that is not valid for this queue type."

// validateID checks a group or deduplication ID (F-017, F-018).
func validateID(parameter, id string) *apiError {
	ok := len(id) >= 1 && len(id) <= maxIDLength
	for i := 0; ok && i < len(id); i++ {
		// AWS's list of alphanumeric and punctuation characters is all visible ASCII.
		ok = id[i] > ' ' && id[i] <= '~'
	}
	if ok {
		return nil
	}
	return invalidValue(id, parameter, parameter+" can only include alphanumeric and punctuation characters. 1 to 128 in length.")
}

// validateContents makes the checks that depend on the message alone. The parameter `batch`
// selects AWS's text for a message that is too long (F-073, F-145).
func (s *settings) validateContents(e types.SendMessageBatchRequestEntry, batch bool) *apiError {
	body := aws.ToString(e.MessageBody)
	if body == "" {
		return missing("MessageBody")
	}
	if messageSize(e) > s.maximumSize {
		fault := "are invalid"
		if batch {
			fault = "cannot be validated"
		}
		return invalidParameterValue.because("One or more parameters %s. Reason: Message must be shorter than %d bytes.", fault, s.maximumSize)
	}
	if !acceptedText(body) {
		return invalidMessageContents.because("Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF")
	}
	if n := len(e.MessageAttributes); n > maxAttributes {
		return invalidParameterValue.because("Number of message attributes [%d] exceeds the allowed maximum [%d].", n, maxAttributes)
	}
	if len(e.MessageAttributes) > 0 { // most messages have none; skip the work of sorting
		// Check in the order of the names: of two faults, always report the same one.
		for _, name := range slices.Sorted(maps.Keys(e.MessageAttributes)) {
			if err := validateAttribute(name, e.MessageAttributes[name]); err != nil {
				return err
			}
		}
	}
	return validateSystemAttributes(e.MessageSystemAttributes)
}

// messageSize returns the size of a message in bytes: its body and its attributes with
// their names and types (F-073). System attributes do not count.
func messageSize(e types.SendMessageBatchRequestEntry) int {
	return len(aws.ToString(e.MessageBody)) + attributesSize(e.MessageAttributes)
}

// acceptedText reports whether s is valid UTF-8 and has only the characters that SQS
// accepts in a text (F-072).
func acceptedText(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			return acceptedRunes(s[i:])
		case c < 0x20 && c != '\t' && c != '\n' && c != '\r':
			return false
		}
	}
	return true
}

func acceptedRunes(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		switch {
		case r == '\t', r == '\n', r == '\r':
		case r < 0x20, r == 0xFFFE, r == 0xFFFF:
			return false
		}
	}
	return true
}

func validateAttribute(name string, a types.MessageAttributeValue) *apiError {
	if !attributeName(name) {
		return invalidParameterValue.because("Message (user) attribute name '%s' is invalid: 1 to %d letters, digits, underscores, hyphens and periods, not starting with AWS. or Amazon., not starting or ending with a period.", name, maxNameLength)
	}
	dataType, base := aws.ToString(a.DataType), baseType(a)
	if base != "String" && base != "Number" && base != "Binary" {
		return invalidParameterValue.because("The type of message (user) attribute '%s' is invalid. You must use only the following supported type prefixes: Binary, Number, String.", name)
	}
	if len(dataType) > maxNameLength {
		return invalidParameterValue.because("The type of message (user) attribute '%s' is longer than %d characters.", name, maxNameLength)
	}
	if a.StringListValues != nil || a.BinaryListValues != nil {
		return unsupportedOperation.because("Message (user) attribute '%s' has a list value, which is reserved for future use.", name)
	}
	value := aws.ToString(a.StringValue)
	switch {
	case base == "Binary" && len(a.BinaryValue) == 0, base != "Binary" && value == "":
		return invalidParameterValue.because("Message (user) attribute '%s' must contain a non-empty value of type '%s'.", name, base)
	case base == "Binary":
		return nil
	case !acceptedText(value):
		return invalidParameterValue.because("Message (user) attribute '%s' contains characters that are not valid in a message.", name)
	case base == "Number" && !isNumber(value):
		return invalidParameterValue.because("Can't cast the value of message (user) attribute '%s' to a number.", name)
	}
	return nil
}

// attributeName reports whether the name is a valid name of a message attribute
// (F-078).
func attributeName(name string) bool {
	if name == "" || utf8.RuneCountInString(name) > maxNameLength || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") {
		return false
	}
	lower := strings.ToLower(name)
	if strings.HasPrefix(lower, "aws.") || strings.HasPrefix(lower, "amazon.") {
		return false
	}
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.", r) {
			return false
		}
	}
	return true
}

func validateSystemAttributes(attributes map[string]types.MessageSystemAttributeValue) *apiError {
	for name, a := range attributes {
		if name != string(types.MessageSystemAttributeNameForSendsAWSTraceHeader) {
			return invalidParameterValue.because("Message system attribute '%s' is invalid: only AWSTraceHeader can be sent.", name)
		}
		if aws.ToString(a.DataType) != "String" || aws.ToString(a.StringValue) == "" || !acceptedText(*a.StringValue) {
			return invalidParameterValue.because("Message system attribute '%s' must contain a non-empty value of type 'String'.", name)
		}
	}
	return nil
}

// validateEntries makes the first checks of every batch call (F-053 to F-056, F-062).
// entryType is AWS's name for the entry.
func validateEntries[E any](entryType string, entries []E, idOf func(E) *string) *apiError {
	if len(entries) == 0 {
		return emptyBatchRequest.because("There should be at least one %s in the request.", entryType)
	}
	if len(entries) > maxBatchEntries {
		return tooManyEntries.because("Maximum number of entries per request are %d. You have sent %d.", maxBatchEntries, len(entries))
	}
	seen := make(map[string]bool, len(entries))
	for _, e := range entries {
		id := aws.ToString(idOf(e))
		if !entryID(id) {
			return invalidEntryID.because("A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
		}
		if seen[id] {
			return entryIDsNotDistinct.because("Id %s repeated.", id)
		}
		seen[id] = true
	}
	return nil
}

func entryID(id string) bool {
	for i := range len(id) {
		c := id[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return len(id) >= 1 && len(id) <= maxEntryIDLength
}
