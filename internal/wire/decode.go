package wire

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// decode sets the members of the output of SendMessage or SendMessageBatch. It reports false,
// and leaves the output unchanged, unless the text has the form that SQS gives a success:
// the known members, each once, with strings of printable ASCII characters without escapes.
// A batch with a failed entry is decoded by the SDK.
func decode(text string, out smithy.Deserializable) bool {
	r := reader{rest: text}
	switch out := out.(type) {
	case *sqs.SendMessageOutput:
		e, ok := r.entry(new([members]string))
		if !ok || e.Id != nil || !r.end() {
			return false
		}
		out.MD5OfMessageAttributes, out.MD5OfMessageBody, out.MD5OfMessageSystemAttributes = e.MD5OfMessageAttributes, e.MD5OfMessageBody, e.MD5OfMessageSystemAttributes
		out.MessageId, out.SequenceNumber = e.MessageId, e.SequenceNumber
		return true
	case *sqs.SendMessageBatchOutput:
		entries, failed, ok := r.batch()
		if !ok || !r.end() {
			return false
		}
		out.Successful, out.Failed = entries, failed
		return true
	}
	return false
}

// members is the number of members of a successful entry.
const members = 6

// maxEntries is the number of entries that SQS accepts in a batch (F-054).
const maxEntries = 10

type reader struct{ rest string }

// take skips white space, and then the character c, if that comes next.
func (r *reader) take(c byte) bool {
	i := 0
	for i < len(r.rest) && (r.rest[i] == ' ' || r.rest[i] == '\n' || r.rest[i] == '\r' || r.rest[i] == '\t') {
		i++
	}
	r.rest = r.rest[i:]
	if r.rest == "" || r.rest[0] != c {
		return false
	}
	r.rest = r.rest[1:]
	return true
}

// end reports whether only white space is left.
func (r *reader) end() bool { return strings.Trim(r.rest, " \n\r\t") == "" }

// text reads a string of printable ASCII characters without escapes.
func (r *reader) text() (string, bool) {
	if !r.take('"') {
		return "", false
	}
	for i := range len(r.rest) {
		switch c := r.rest[i]; {
		case c == '"':
			s := r.rest[:i]
			r.rest = r.rest[i+1:]
			return s, true
		case c == '\\' || c < ' ' || c > '~':
			return "", false
		}
	}
	return "", false
}

// entry reads an object whose members are strings. It stores the strings in room.
func (r *reader) entry(room *[members]string) (types.SendMessageBatchResultEntry, bool) {
	var e types.SendMessageBatchResultEntry
	if !r.take('{') {
		return e, false
	}
	for i := range room {
		if i > 0 && !r.take(',') {
			return e, r.take('}')
		}
		name, ok := r.text()
		if !ok || !r.take(':') {
			return e, false
		}
		if room[i], ok = r.text(); !ok {
			return e, false
		}
		var member **string
		switch name {
		case "Id":
			member = &e.Id
		case "MessageId":
			member = &e.MessageId
		case "MD5OfMessageBody":
			member = &e.MD5OfMessageBody
		case "MD5OfMessageAttributes":
			member = &e.MD5OfMessageAttributes
		case "MD5OfMessageSystemAttributes":
			member = &e.MD5OfMessageSystemAttributes
		case "SequenceNumber":
			member = &e.SequenceNumber
		}
		if member == nil || *member != nil {
			return e, false
		}
		*member = &room[i]
	}
	return e, r.take('}')
}

// batch reads the answer of a batch without failed entries.
func (r *reader) batch() (entries []types.SendMessageBatchResultEntry, failed []types.BatchResultErrorEntry, ok bool) {
	for more := r.take('{'); more; more = r.take(',') {
		name, ok := r.text()
		if !ok || !r.take(':') || !r.take('[') {
			return nil, nil, false
		}
		switch {
		case name == "Failed" && failed == nil && r.take(']'):
			failed = []types.BatchResultErrorEntry{}
		case name == "Successful" && entries == nil:
			if entries, ok = r.entries(); !ok {
				return nil, nil, false
			}
		default:
			return nil, nil, false
		}
	}
	return entries, failed, entries != nil && r.take('}')
}

func (r *reader) entries() ([]types.SendMessageBatchResultEntry, bool) {
	room := new([maxEntries][members]string)
	entries := make([]types.SendMessageBatchResultEntry, 0, maxEntries)
	for len(entries) < maxEntries {
		e, ok := r.entry(&room[len(entries)])
		if !ok {
			return nil, false
		}
		entries = append(entries, e)
		if !r.take(',') {
			break
		}
	}
	return entries, r.take(']')
}
