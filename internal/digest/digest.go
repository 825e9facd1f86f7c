// Package digest computes the MD5 digests that SQS returns for a sent message: of the
// body, of the attributes, and of the system attributes.
//
// The producer compares the digests with its message; the fake queue returns them.
// Digests detect damage on the way, not forgery; the protocol requires MD5. All functions
// are pure and accept any input without an error.
package digest

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/textview"
)

// Sum is the digest of a body.
type Sum [md5.Size]byte

// Of returns the digest of a body. The call does not allocate.
func Of(body string) Sum { return md5.Sum(textview.Bytes(body)) }

// Is reports whether hexDigest is the digest s in lower-case hexadecimal, the form of the
// SQS field MD5OfMessageBody. The call does not allocate.
func (s Sum) Is(hexDigest string) bool {
	var text [2 * md5.Size]byte
	hex.Encode(text[:], s[:])
	return hexDigest == string(text[:])
}

// Body returns MD5OfMessageBody, in lower-case hexadecimal like all digests.
func Body(body string) string {
	sum := Of(body)
	return hex.EncodeToString(sum[:])
}

// Attributes returns the MD5OfMessageAttributes of SQS, or nil without attributes: AWS
// then omits the field.
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

// SystemAttributes returns MD5OfMessageSystemAttributes. The digest is computed like the
// digest of the attributes.
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
