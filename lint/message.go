package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Message is a message as it is handed to SendMessage, or as an entry to
// SendMessageBatch, of a FIFO queue.
type Message struct {
	// Body is the MessageBody.
	Body string

	// Attributes are the MessageAttributes by name. System attributes such as
	// AWSTraceHeader have no place here: SQS counts them apart.
	Attributes map[string]Attribute

	// GroupID is the MessageGroupId, empty where the message has none.
	GroupID string

	// DeduplicationID is an explicit MessageDeduplicationId, empty where the
	// message has none. SQS refuses one that is present and empty (F-017).
	DeduplicationID string

	// DelaySeconds is the message's own delay.
	DelaySeconds int32

	// MaxSize is the queue's MaximumMessageSize in bytes. Where it is not
	// positive, 1,048,576 holds, the most that SQS allows.
	MaxSize int

	// Organization is the first label of event_source. Empty means [KFM].
	Organization string
}

// Attribute is the value of a message attribute. DataType says which of the two
// values counts; the other one has to be empty.
type Attribute struct {
	// DataType is String, Number or Binary, or one of them with a suffix of the
	// sender's own, as in Number.float.
	DataType string

	// StringValue is the value of a String or a Number.
	StringValue string

	// BinaryValue is the value of a Binary, before base64.
	BinaryValue []byte
}

const (
	defaultMaxSize   = 1 << 20 // F-073
	maxAttributes    = 10      // F-079
	maxAttributeName = 256     // F-078, also for data types
	maxID            = 128     // F-017, F-018
)

// Check holds a message against every rule that can be decided on one message.
// It returns nil for a message that breaks none. The findings are sorted by
// rule, field and offset, so that equal messages have equal findings.
//
// Check reads nothing but its argument and does not keep or change it: it is
// safe for concurrent use as long as nobody writes to the message meanwhile.
// Any message may be given to it, however broken.
func Check(m Message) []Finding {
	b, fs := Contract{m.Organization}.checkBody(m.Body)
	fs = slices.Concat(fs, checkAround(m, b))
	sortFindings(fs)
	return fs
}

// checkAround checks what a message has besides its body.
func checkAround(m Message, b body) []Finding {
	return slices.Concat(
		checkIdentity(m, b),
		CheckGroupID(m.GroupID),
		checkDeduplicationID(m.DeduplicationID),
		checkDelay(m.DelaySeconds),
		checkSize(m),
		checkAttributes(m.Attributes),
	)
}

// CheckBody is [Contract.CheckBody] of the Kansas Frontier Matrix.
func CheckBody(body string) []Finding { return Contract{}.CheckBody(body) }

// Size returns the bytes of a message as SQS counts them against the limit on
// messages and batches (F-073): the body in UTF-8, and of each attribute the
// name, the data type and the value. It is what [Check] compares with MaxSize.
func Size(m Message) int {
	n := len(m.Body)
	for name, a := range m.Attributes {
		n += len(name) + len(a.DataType) + len(a.StringValue) + len(a.BinaryValue)
	}
	return n
}

func checkSize(m Message) []Finding {
	limit := m.MaxSize
	if limit <= 0 {
		limit = defaultMaxSize
	}
	size := Size(m)
	if size <= limit {
		return nil
	}
	return []Finding{found(tooLarge, "MessageBody", fmt.Sprintf(
		"the message has %s bytes, %s of them in attributes; the limit is %s", count(size), count(size-len(m.Body)), count(limit)))}
}

// CheckGroupID checks a message group ID before there is a message in the
// group. It returns nil if SQS takes the ID, else findings of rule SF009 (there
// is none) or SF010 (SQS refuses it).
func CheckGroupID(id string) []Finding {
	if id == "" {
		return []Finding{found(missingGroupID, "MessageGroupId", "the message has no MessageGroupId")}
	}
	return checkID("MessageGroupId", id)
}

func checkDeduplicationID(id string) []Finding {
	if id == "" {
		return nil
	}
	return checkID("MessageDeduplicationId", id)
}

// checkID takes what F-017 lists, which is ASCII from "!" to "~" without a gap.
func checkID(field, id string) []Finding {
	for at, c := range id {
		if c <= ' ' || c > '~' {
			return []Finding{found(invalidID, field, fmt.Sprintf(
				"%s %s has %q at byte %d: only ASCII letters, digits and punctuation are allowed", field, quote(id), c, at))}
		}
	}
	if len(id) > maxID {
		return []Finding{found(invalidID, field, fmt.Sprintf(
			"%s %s has %s characters, %d are allowed", field, quote(id), count(len(id)), maxID))}
	}
	return nil
}

func checkDelay(seconds int32) []Finding {
	if seconds == 0 {
		return nil
	}
	return []Finding{found(fifoDelay, "DelaySeconds", fmt.Sprintf(
		"the message has a delay of %d s, which SQS refuses on a FIFO queue", seconds))}
}

func checkAttributes(attributes map[string]Attribute) []Finding {
	if len(attributes) == 0 {
		return nil
	}
	var fs []Finding
	if n := len(attributes); n > maxAttributes {
		fs = append(fs, found(tooManyAttributes, "MessageAttributes", fmt.Sprintf(
			"the message has %s attributes, %d are allowed", count(n), maxAttributes)))
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		fs = append(fs, CheckAttribute(name, attributes[name])...)
	}
	return fs
}

// CheckAttribute checks one attribute before there is a message with it. It
// returns nil if SQS takes its name, type and value, else findings of rule SF053.
func CheckAttribute(name string, a Attribute) (fs []Finding) {
	for _, fault := range [...]string{nameFault(name), a.typeFault(), a.valueFault()} {
		if fault != "" {
			fs = append(fs, found(invalidAttribute, attributeField(name), fault))
		}
	}
	return fs
}

// nameFault takes letters and digits of any script: umlauts were seen to be
// accepted, and where SQS draws the line is not known. What it does refuse, it
// refuses aloud.
func nameFault(name string) string {
	lower := strings.ToLower(name)
	switch {
	case name == "":
		return "the attribute has no name"
	case utf8.RuneCountInString(name) > maxAttributeName:
		return fmt.Sprintf("the name has %s characters, %d are allowed", count(utf8.RuneCountInString(name)), maxAttributeName)
	case strings.HasPrefix(lower, "aws."), strings.HasPrefix(lower, "amazon."):
		return "the name begins with AWS. or Amazon., which is reserved"
	case name[0] == '.', name[len(name)-1] == '.':
		return "the name begins or ends with a dot"
	}
	for at, c := range name {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' && c != '-' && c != '.' {
			return fmt.Sprintf("the name has %q at byte %d: only letters, digits, underscores, hyphens and dots are allowed", c, at)
		}
	}
	return ""
}

func (a Attribute) base() string {
	base, _, _ := strings.Cut(a.DataType, ".")
	return base
}

func (a Attribute) typeFault() string {
	switch base := a.base(); base {
	case "String", "Number", "Binary":
	case "":
		return "the attribute has no data type"
	default:
		return fmt.Sprintf("the data type %s is none of String, Number and Binary", quote(a.DataType))
	}
	switch n := utf8.RuneCountInString(a.DataType); {
	case n > maxAttributeName:
		return fmt.Sprintf("the data type has %s characters, %d are allowed", count(n), maxAttributeName)
	case strings.HasSuffix(a.DataType, "."):
		return fmt.Sprintf("the data type %s has a dot but no suffix", quote(a.DataType))
	}
	return textFault("the data type", a.DataType)
}

func (a Attribute) valueFault() string {
	binary := a.base() == "Binary"
	switch {
	case a.StringValue == "" && len(a.BinaryValue) == 0:
		return "the attribute has an empty value"
	case binary && a.StringValue != "":
		return fmt.Sprintf("the data type %s has a string value", quote(a.DataType))
	case !binary && len(a.BinaryValue) > 0:
		return fmt.Sprintf("the data type %s has a binary value", quote(a.DataType))
	}
	return textFault("the value", a.StringValue)
}

// textFault refuses what SQS refuses of any text, and what would not even
// arrive there as it is.
func textFault(what, text string) string {
	if at, c := refused(text); at >= 0 {
		return fmt.Sprintf("%s has the character %U at byte %d, which SQS refuses", what, c, at)
	}
	if !utf8.ValidString(text) {
		return what + " is not valid UTF-8"
	}
	return ""
}
