package sqstest

// Deviations from AWS in this file: none known.

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// baseType returns the DataType up to the first dot, such as String or Number. The
// sender may choose any text after the dot.
func baseType(a types.MessageAttributeValue) string {
	base, _, _ := strings.Cut(aws.ToString(a.DataType), ".")
	return base
}

// attributesSize returns the attributes' part of the size of a message (F-073).
func attributesSize(attributes map[string]types.MessageAttributeValue) int {
	n := 0
	for name, a := range attributes {
		n += len(name) + len(aws.ToString(a.DataType)) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue)
	}
	return n
}

// cloneAttributes copies the attributes, because a caller of the in-process API may
// still write to the maps and byte slices.
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
