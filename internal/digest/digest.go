// Package digest is the MD5 digests with which SQS answers a send: of the body,
// and of the attributes in a separate form (F-085 to F-087).
//
// The producer compares them with what it sent, the fake makes them. They guard
// against damage on the way, not against forgery; MD5 is what the protocol
// prescribes. All functions are pure and never fail, whatever they are given.
package digest

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"unsafe"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Sum is the digest of a body.
type Sum [md5.Size]byte

// Of returns the digest of a body. It allocates nothing.
func Of(body string) Sum { return md5.Sum(unsafe.Slice(unsafe.StringData(body), len(body))) }

// Is reports whether got is the digest as MD5OfMessageBody has it. It allocates
// nothing.
func (s Sum) Is(got string) bool {
	var text [2 * md5.Size]byte
	hex.Encode(text[:], s[:])
	return got == string(text[:])
}

// Body is MD5OfMessageBody (F-085), in lower-case hexadecimal as all digests.
func Body(body string) string {
	sum := Of(body)
	return hex.EncodeToString(sum[:])
}

// Attributes is MD5OfMessageAttributes (F-086), nil for no attributes because
// AWS leaves the field out then (F-087).
func Attributes(attributes map[string]types.MessageAttributeValue) *string {
	if len(attributes) == 0 {
		return nil
	}
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		b = appendSized(b, name)
		b = appendSized(b, aws.ToString(a.DataType))
		if base, _, _ := strings.Cut(aws.ToString(a.DataType), "."); base == "Binary" {
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

// SystemAttributes is MD5OfMessageSystemAttributes: the same algorithm over the
// other map (F-087).
func SystemAttributes(attributes map[string]types.MessageSystemAttributeValue) *string {
	same := make(map[string]types.MessageAttributeValue, len(attributes))
	for name, a := range attributes {
		same[name] = types.MessageAttributeValue(a)
	}
	return Attributes(same)
}

func appendSized(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s))) // #nosec G115 -- a message has at most 1 MiB
	return append(b, s...)
}
