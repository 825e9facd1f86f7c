package rules

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestNames checks each expression in names.go: the names in the field `yes` must match,
// and the names in the field `no` must not match.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		name    string
		re      *regexp.Regexp
		yes, no string
	}{
		{"placeName", placeName, "region aws_region Host hostname x-env stage reply_to replyQueue callback_url callback user-agent", "regional hosted kind order replied to"},
		{"bodyName", bodyName, "body Payload rawBody msg message messageBody json data orderJSON", "bodyID id order database text messageID"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name := range strings.FieldsSeq(c.yes) {
				assert.True(t, c.re.MatchString(name), name)
			}
			for name := range strings.FieldsSeq(c.no) {
				assert.False(t, c.re.MatchString(name), name)
			}
		})
	}
}
