package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Message is a message of a FIFO queue, with the parameters of SendMessage or of an
// entry of SendMessageBatch.
type Message struct {
	// Body is the MessageBody.
	Body string

	// Attributes are the MessageAttributes by name, without system attributes such as
	// AWSTraceHeader; SQS counts system attributes separately.
	Attributes map[string]Attribute

	// GroupID is the MessageGroupId, or empty.
	GroupID string

	// DeduplicationID is an explicit MessageDeduplicationId, or empty for none. SQS
	// refuses an explicit empty ID (F-017).
	DeduplicationID string

	// DelaySeconds is the message's own delay.
	DelaySeconds int32

	// MaxSize is the queue's MaximumMessageSize in bytes. Zero and less mean
	// 1,048,576, the maximum of SQS.
	MaxSize int

	// Organization is the only accepted first label of event_source, see [Contract].
	Organization string

	// KnowsDataset, if not nil, reports whether the data catalogue has a dataset. Check asks
	// for DatasetID, if it is not empty, and for the member dataset_id of the payload or of
	// the body.
	KnowsDataset func(datasetID string) bool
	DatasetID    string
}

// Attribute is the value of a message attribute. DataType selects one of the two values;
// the other value must be empty.
type Attribute struct {
	// DataType is String, Number or Binary. The sender may add a suffix, as in
	// Number.float.
	DataType string

	// StringValue is the value of a String or Number.
	StringValue string

	// BinaryValue is the value of a Binary, not encoded in base64.
	BinaryValue []byte
}

const (
	defaultMaxSize   = 1 << 20 // bytes (F-073)
	maxAttributes    = 10      // F-079
	maxAttributeName = 256     // characters (F-078); also for data types
	maxID            = 128     // characters (F-017, F-018)
)

// Check checks a message against every rule about single messages (see [OnMessage]). It
// returns nil for a message without violations. The findings are sorted by rule, field and
// offset.
//
// Check accepts any message. It does not change the message or keep a part of it. Check is
// safe for concurrent use while no goroutine writes to the message.
func Check(m Message) []Finding {
	b, fs := Contract{m.Organization}.checkBody(m.Body)
	fs = slices.Concat(fs, checkOutsideBody(m, b))
	sortFindings(fs)
	return fs
}

// checkOutsideBody checks the attributes, the IDs, the delay and the size of a message. It
// compares attributes with the parsed body b.
func checkOutsideBody(m Message, b body) []Finding {
	return slices.Concat(
		checkIdentity(m, b),
		CheckGroupID(m.GroupID),
		checkDeduplicationID(m.DeduplicationID),
		checkDelay(m.DelaySeconds),
		checkSize(m),
		checkAttributes(m.Attributes),
		checkDataset(m, b),
	)
}

func checkDataset(m Message, b body) []Finding {
	if m.KnowsDataset == nil {
		return nil
	}
	var fs []Finding
	check := func(f Finding, id string) {
		if id = strings.TrimSpace(id); id != "" && !m.KnowsDataset(id) {
			f.Message = fmt.Sprintf("the catalogue has no dataset %s", quote(id))
			fs = append(fs, f)
		}
	}
	const member = "dataset_id"
	check(found(unknownDataset, "Dataset", ""), m.DatasetID)
	if id := b.memberText(member); id != "" {
		check(inBody(unknownDataset, "/"+member, b.offsetOf(member), ""), id)
	}
	if i := index(b.members, "payload"); i >= 0 {
		start := b.members[i].start
		inner := body{text: b.text[start:b.members[i].end]}
		inner.members, _ = members(inner.text)
		if id := inner.memberText(member); id != "" && id != m.DatasetID {
			check(inBody(unknownDataset, "/payload/"+member, start+inner.offsetOf(member), ""), id)
		}
	}
	return fs
}

// CheckBody is [Contract.CheckBody] for the zero Contract, which accepts every
// organization.
func CheckBody(body string) []Finding { return Contract{}.CheckBody(body) }

// Size returns the number of bytes of a message by SQS's count for limits (F-073). It
// counts the body in UTF-8, and the name, the data type and the value of each attribute.
// [Check] compares Size with MaxSize.
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

// CheckGroupID checks a message group ID without a message. It returns nil for an ID
// that SQS accepts, otherwise findings of rule SF009 (the ID is missing) or SF010 (SQS
// refuses the ID).
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

// checkID reports an ID refused by SQS (F-017, F-018): more than 128 characters, or a
// character outside ASCII "!" to "~".
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

// CheckAttribute checks one attribute without a message. It returns nil if SQS accepts
// its name, type and value, otherwise findings of rule SF053.
func CheckAttribute(name string, a Attribute) (fs []Finding) {
	for _, fault := range [...]string{nameFault(name), a.typeFault(), a.valueFault()} {
		if fault != "" {
			fs = append(fs, found(invalidAttribute, attributeField(name), fault))
		}
	}
	return fs
}

// nameFault describes the fault of an attribute's name. It accepts letters and digits of
// any script, because the rule of SQS for letters outside of ASCII is unknown.
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

// textFault describes why SQS refuses a text, or why the text would not arrive unchanged.
// It returns "" for other texts.
func textFault(what, text string) string {
	if at, c := firstRefused(text); at >= 0 {
		return fmt.Sprintf("%s has the character %U at byte %d, which SQS refuses", what, c, at)
	}
	if !utf8.ValidString(text) {
		return what + " is not valid UTF-8"
	}
	return ""
}
