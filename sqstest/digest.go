package sqstest

// Deviations from AWS in this file: none known. The algorithm reproduces every
// recorded digest of F-085 to F-087.

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// bodyMD5 is MD5OfMessageBody (F-085). MD5 is what the protocol prescribes; it
// guards against damage in transit, not against forgery.
func bodyMD5(body string) string {
	sum := md5.Sum([]byte(body))
	return hex.EncodeToString(sum[:])
}

// attributesMD5 is MD5OfMessageAttributes (F-086), nil for no attributes because
// AWS leaves the field out then (F-087).
func attributesMD5(attributes map[string]types.MessageAttributeValue) *string {
	if len(attributes) == 0 {
		return nil
	}
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		b = appendSized(b, name)
		b = appendSized(b, aws.ToString(a.DataType))
		if baseType(a) == "Binary" {
			b = append(b, 2)
			b = appendSized(b, string(a.BinaryValue))
		} else {
			b = append(b, 1)
			b = appendSized(b, aws.ToString(a.StringValue))
		}
	}
	sum := md5.Sum(b)
	return aws.String(hex.EncodeToString(sum[:]))
}

// systemAttributesMD5 is MD5OfMessageSystemAttributes: the same algorithm over
// the other map (F-087).
func systemAttributesMD5(attributes map[string]types.MessageSystemAttributeValue) *string {
	same := make(map[string]types.MessageAttributeValue, len(attributes))
	for name, a := range attributes {
		same[name] = types.MessageAttributeValue(a)
	}
	return attributesMD5(same)
}

func appendSized(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}

// baseType is the part of the DataType that AWS gives a meaning to; what follows
// the first dot is the sender's own.
func baseType(a types.MessageAttributeValue) string {
	base, _, _ := strings.Cut(aws.ToString(a.DataType), ".")
	return base
}

// attributesSize is what the attributes add to the size of a message (F-073).
func attributesSize(attributes map[string]types.MessageAttributeValue) int {
	n := 0
	for name, a := range attributes {
		n += len(name) + len(aws.ToString(a.DataType)) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue)
	}
	return n
}

// cloneAttributes keeps the queue's copy apart from maps and byte slices that a
// caller of the in-process door may still write to.
func cloneAttributes(attributes map[string]types.MessageAttributeValue) map[string]types.MessageAttributeValue {
	if len(attributes) == 0 {
		return nil
	}
	c := make(map[string]types.MessageAttributeValue, len(attributes))
	for name, a := range attributes {
		v := types.MessageAttributeValue{DataType: aws.String(aws.ToString(a.DataType))}
		if baseType(a) == "Binary" {
			v.BinaryValue = slices.Clone(a.BinaryValue)
		} else {
			v.StringValue = aws.String(aws.ToString(a.StringValue))
		}
		c[name] = v
	}
	return c
}
