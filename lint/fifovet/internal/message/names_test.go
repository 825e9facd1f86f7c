package message

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
		{
			"memberName", memberName,
			"id ID key uuid order_id orderID event-key request.uuid TraceUUID ulid",
			"valid paid kind idle keyed monkey grid Grid",
		},
		{"eventType", eventType, "OrderEvent Message envelope Job StartCommand notification", "order Messages eventual Reading"},
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
