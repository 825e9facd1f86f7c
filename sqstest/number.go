package sqstest

// Deviations from AWS in this file: a number with an exponent is returned without an
// exponent. Numbers out of range are refused with the fake's own error message. No
// recording shows AWS's behaviour.

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// The documented range of a Number: 38 significant digits, 10^-128 to 10^126.
const (
	maxNumberDigits   = 38
	minNumberExponent = -128
	maxNumberExponent = 126
)

// number is a decimal number with the value 0.digits × 10^point. The field `digits` has no
// zeros at either end, and is empty for the number zero.
type number struct {
	negative bool
	digits   string
	point    int
}

func parseNumber(s string) (n number, ok bool) {
	mantissa, exponent, hasExponent := strings.Cut(strings.ToLower(s), "e")
	whole, fraction, _ := strings.Cut(unsigned(mantissa), ".")
	if whole+fraction == "" || !onlyDigits(whole) || !onlyDigits(fraction) {
		return number{}, false
	}
	n.negative = mantissa[0] == '-'
	if hasExponent {
		// Refuse an exponent that does not fit into 32 bits, even for the number zero. Any other
		// such number is out of range: no message has room for a mantissa with billions of zeros.
		e, err := strconv.ParseInt(exponent, 10, 32)
		if err != nil {
			return number{}, false
		}
		n.point = int(e)
	}
	n.point += len(whole)
	n.digits = strings.TrimLeft(whole+fraction, "0")
	n.point -= len(whole+fraction) - len(n.digits)
	n.digits = strings.TrimRight(n.digits, "0")
	if n.digits == "" {
		return number{}, true
	}
	exponentOfFirst := n.point - 1
	return n, len(n.digits) <= maxNumberDigits && exponentOfFirst >= minNumberExponent && exponentOfFirst <= maxNumberExponent
}

// String returns the number as receivers get it (F-080): without an exponent and
// without superfluous zeros.
func (n number) String() string {
	s := n.digits
	switch {
	case n.digits == "":
		return "0"
	case n.point <= 0:
		s = "0." + strings.Repeat("0", -n.point) + s
	case n.point >= len(s):
		s += strings.Repeat("0", n.point-len(s))
	default:
		s = s[:n.point] + "." + s[n.point:]
	}
	if n.negative {
		s = "-" + s
	}
	return s
}

func isNumber(s string) bool {
	_, ok := parseNumber(s)
	return ok
}

// normalised rewrites each Number attribute in place to the text that receivers get. The
// sender gets the digest of the original text, the receiver the digest of the new text.
func normalised(attributes map[string]types.MessageAttributeValue) map[string]types.MessageAttributeValue {
	for name, a := range attributes {
		if baseType(a) != "Number" {
			continue
		}
		if n, ok := parseNumber(aws.ToString(a.StringValue)); ok {
			a.StringValue = aws.String(n.String())
			attributes[name] = a
		}
	}
	return attributes
}

func unsigned(s string) string {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		return s[1:]
	}
	return s
}

func onlyDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }
