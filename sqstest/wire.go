package sqstest

// Deviations from AWS in this file:
//   - Member names are matched case-insensitively, and the last of repeated members counts.
//   - An escaped lone surrogate is treated like U+FFFF, another forbidden character (F-155).
//   - The attributes of a message have the recorded order (F-148). AWSTraceHeader and
//     DeadLetterQueueSourceArn were not recorded and come last.
//   - All other members are in alphabetical order, as recorded. The order of a queue's
//     attributes was not recorded.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// The headers of F-130.
const (
	contentType      = "application/x-amz-json-1.0"
	requestIDHeader  = "x-amzn-requestid"
	queryErrorHeader = "x-amzn-query-error"
)

// decode decodes the input of a request from JSON. The SDK's input types have the member
// names that AWS uses, so no other types are needed.
func decode(body []byte, in any) error {
	if !utf8.Valid(body) {
		return serializationFailed.because("The request is not valid UTF-8.") // unrecorded
	}
	err := json.Unmarshal(withoutLoneSurrogates(body), in)
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch { // unrecorded
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return serializationFailed.because("The request is not valid JSON from byte %d on.", syntax.Offset)
	case errors.As(err, &wrong) && wrong.Field != "":
		return serializationFailed.because("The member %s is a JSON %s, which is not its type.", wrong.Field, wrong.Value)
	case errors.As(err, &wrong):
		return serializationFailed.because("The request is a JSON %s and not an object.", wrong.Value)
	}
	return serializationFailed.because("The request cannot be read.") // such as bad base64
}

// withoutLoneSurrogates replaces each escaped lone surrogate, such as \\ud800, by \\uffff.
// Package json would replace it by U+FFFD, which SQS accepts, and two texts would become
// equal.
func withoutLoneSurrogates(body []byte) []byte {
	// escaped returns the UTF-16 unit of the escape at index i, or 0 if there is none.
	escaped := func(i int) rune {
		if len(body) < i+6 || body[i] != '\\' || body[i+1] != 'u' {
			return 0
		}
		n, err := strconv.ParseUint(string(body[i+2:i+6]), 16, 16)
		if err != nil {
			return 0
		}
		return rune(n)
	}
	cloned := false
	for i := 0; i < len(body); i++ {
		next := bytes.IndexByte(body[i:], '\\')
		if next < 0 {
			break
		}
		i += next
		switch r := escaped(i); {
		case !utf16.IsSurrogate(r):
			i++ // the escaped character may be a backslash
		case utf16.DecodeRune(r, escaped(i+6)) != utf8.RuneError:
			i += 11
		default:
			if !cloned {
				body, cloned = bytes.Clone(body), true
			}
			copy(body[i+2:], "ffff")
			i += 5
		}
	}
	return body
}

// encode encodes the output of a request as one line of JSON, without escapes for HTML and
// without absent members (F-060). An operation without a result has no bytes (F-132).
func encode(out any) ([]byte, error) {
	view := wireForm(out)
	if view == nil {
		return nil, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(view); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

type errorWire struct {
	Type    string `json:"__type"`
	Message string `json:"message"`
}

func writeError(w http.ResponseWriter, e *apiError) {
	fault := "Sender"
	if e.class.fault == smithy.FaultServer {
		fault = "Receiver"
	}
	w.Header().Set(queryErrorHeader, e.class.query+";"+fault)
	// errorWire has only strings, so encode cannot fail.
	b, _ := encode(errorWire{Type: e.class.shape, Message: e.message})
	writeAnswer(w, e.class.status, b)
}

// sourcesWire is the answer of ListDeadLetterSourceQueues, the only answer with a member
// name in lower camel case. An empty list is written as [].
type sourcesWire struct {
	NextToken *string  `json:",omitempty"`
	QueueURLs []string `json:"queueUrls"`
}

// commonFields is the number of fields in every output type of the SDK: ResultMetadata and
// noSmithyDocumentSerde. A type with no other fields has no result.
const commonFields = 2

// wireForm returns the value to encode for an output of the SDK, or nil for an output
// without a body. Other values are returned unchanged.
func wireForm(out any) any {
	if o, ok := out.(*sqs.ListDeadLetterSourceQueuesOutput); ok {
		return sourcesWire{o.NextToken, append([]string{}, o.QueueUrls...)}
	}
	v := reflect.ValueOf(out)
	switch {
	case v.Kind() != reflect.Pointer:
		return out
	case v.Elem().NumField() == commonFields:
		return nil
	}
	return present(v.Elem())
}

// present converts a value of an SDK type to maps with only the members that AWS sends.
// For a struct of the SDK, encoding/json would write the absent members as null. The order
// is fixed, because encoding/json sorts the keys of a map.
func present(v reflect.Value) any {
	t := v.Type()
	switch kind := t.Kind(); {
	case kind == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = present(v.Index(i))
		}
		return list
	case kind == reflect.Map && t.Elem().Kind() == reflect.Struct:
		members := make(map[string]any, v.Len())
		for name, element := range v.Seq2() {
			members[name.String()] = present(element)
		}
		return members
	case kind != reflect.Struct:
		return v.Interface()
	}
	members := map[string]any{}
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && f.Name != "ResultMetadata" && !isAbsent(v.Field(i)) {
			members[f.Name] = present(v.Field(i))
		}
	}
	if m, ok := v.Interface().(types.Message); ok && len(m.Attributes) > 0 {
		members["Attributes"] = systemAttributesWire(m.Attributes)
	}
	return members
}

func isAbsent(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return v.IsNil()
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return false
}

// systemAttributesWire encodes the attributes of a message in the order recorded on AWS
// (F-148).
type systemAttributesWire map[string]string

var systemAttributesOrder = []types.MessageSystemAttributeName{
	types.MessageSystemAttributeNameSenderId,
	types.MessageSystemAttributeNameApproximateFirstReceiveTimestamp,
	types.MessageSystemAttributeNameApproximateReceiveCount,
	types.MessageSystemAttributeNameSentTimestamp,
	types.MessageSystemAttributeNameSequenceNumber,
	types.MessageSystemAttributeNameMessageDeduplicationId,
	types.MessageSystemAttributeNameMessageGroupId,
	types.MessageSystemAttributeNameAWSTraceHeader,
	types.MessageSystemAttributeNameDeadLetterQueueSourceArn,
}

// MarshalJSON implements json.Marshaler.
func (a systemAttributesWire) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, name := range systemAttributesOrder {
		value, ok := a[string(name)]
		if !ok {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		text, err := encode(value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%q:%s", name, text)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
