package wire

import (
	"bytes"
	"encoding/base64"
	"math/big"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/document"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
)

// Encode appends the JSON text of the input of SendMessage or SendMessageBatch. It reports
// false for another input, and for a value that only the SDK encodes.
func Encode(text *bytes.Buffer, in smithy.Serializable) bool {
	size := 0
	switch in := in.(type) {
	case *sqs.SendMessageInput:
		size = room(in.MessageBody)
	case *sqs.SendMessageBatchInput:
		for i := range in.Entries {
			size += room(in.Entries[i].MessageBody)
		}
	default:
		return false
	}
	text.Grow(size)
	w := writer{text: text.AvailableBuffer()}
	in.Serialize(&w)
	text.Write(w.text)
	return !w.unknown
}

// room returns enough bytes for the JSON text of a usual message. A body in JSON has a
// quote, which needs an escape, in about every eighth byte.
func room(body *string) int {
	if body == nil {
		return 256
	}
	return len(*body) + len(*body)/6 + 256
}

// writer is the serializer to which the SDK's types write their members. It writes values of
// the kinds that a message has: strings, whole numbers, binary values, structures, maps and
// the list of entries. After any other value, `unknown` is true and the text is not complete.
type writer struct {
	text    []byte
	unknown bool
	depth   int // number of open structures, maps and lists
	list    int // depth of the elements of the open list, or 0
}

// name writes the comma before a member or element, and the member's name. The value of a
// map's key, which ends with a colon, has neither. Elements of a list have no name.
func (w *writer) name(schema *smithy.Schema) {
	if len(w.text) == 0 {
		return
	}
	switch w.text[len(w.text)-1] {
	case ':':
		return
	case '{', '[':
	default:
		w.text = append(w.text, ',')
	}
	if name := schema.MemberName(); w.depth != w.list {
		w.text = append(w.text, '"')
		w.text = append(w.text, name...)
		w.text = append(w.text, '"', ':')
	}
}

func (w *writer) value(s string) {
	var err error
	w.text, err = canonicaljson.AppendString(w.text, s)
	w.unknown = w.unknown || err != nil
}

func (w *writer) WriteString(schema *smithy.Schema, s string) {
	w.name(schema)
	w.value(s)
}

func (w *writer) WriteInt32(schema *smithy.Schema, n int32) {
	w.name(schema)
	w.text = strconv.AppendInt(w.text, int64(n), 10)
}

func (w *writer) WriteBlob(schema *smithy.Schema, b []byte) {
	w.name(schema)
	w.text = append(w.text, '"')
	w.text = append(base64.StdEncoding.AppendEncode(w.text, b), '"')
}

func (w *writer) WriteKey(_ *smithy.Schema, key string) {
	if w.text[len(w.text)-1] != '{' {
		w.text = append(w.text, ',')
	}
	w.value(key)
	w.text = append(w.text, ':')
}

func (w *writer) open(schema *smithy.Schema) {
	w.name(schema)
	w.text = append(w.text, '{')
	w.depth++
}

func (w *writer) close() {
	w.text = append(w.text, '}')
	w.depth--
}

func (w *writer) WriteStruct(schema *smithy.Schema) { w.open(schema) }
func (w *writer) CloseStruct()                      { w.close() }
func (w *writer) WriteMap(schema *smithy.Schema)    { w.open(schema) }
func (w *writer) CloseMap()                         { w.close() }

// WriteList writes the list of entries. Lists of strings and of binary values are not in
// use by SQS.
func (w *writer) WriteList(schema *smithy.Schema) {
	w.unknown = w.unknown || schema.MemberName() != "Entries"
	w.name(schema)
	w.text = append(w.text, '[')
	w.depth++
	w.list = w.depth
}

func (w *writer) CloseList() {
	w.text = append(w.text, ']')
	w.depth--
	w.list = 0
}

func (w *writer) Bytes() []byte                                { return w.text }
func (w *writer) WriteInt8(*smithy.Schema, int8)               { w.unknown = true }
func (w *writer) WriteInt16(*smithy.Schema, int16)             { w.unknown = true }
func (w *writer) WriteInt64(*smithy.Schema, int64)             { w.unknown = true }
func (w *writer) WriteFloat32(*smithy.Schema, float32)         { w.unknown = true }
func (w *writer) WriteFloat64(*smithy.Schema, float64)         { w.unknown = true }
func (w *writer) WriteBool(*smithy.Schema, bool)               { w.unknown = true }
func (w *writer) WriteBigInt(*smithy.Schema, *big.Int)         { w.unknown = true }
func (w *writer) WriteBigFloat(*smithy.Schema, *big.Float)     { w.unknown = true }
func (w *writer) WriteTime(*smithy.Schema, time.Time)          { w.unknown = true }
func (w *writer) WriteUnion(_, _ *smithy.Schema)               { w.unknown = true }
func (w *writer) CloseUnion()                                  {}
func (w *writer) WriteDocument(*smithy.Schema, document.Value) { w.unknown = true }
func (w *writer) WriteNil(*smithy.Schema)                      { w.unknown = true }
