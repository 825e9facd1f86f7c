package lint_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

func FuzzCheck(f *testing.F) {
	for _, c := range cases {
		for _, bad := range c.bad {
			if len(bad.message.Body) < 4096 {
				f.Add(bad.message.Body, "unique_key", "String", "x", []byte(nil), bad.message.GroupID, bad.message.DeduplicationID, int32(0), 0)
			}
		}
		for _, good := range c.good {
			if len(good.message.Body) < 4096 {
				f.Add(good.message.Body, "event_id", "Binary", "", []byte(id), "g", hash(good.message.Body), int32(1), 1)
			}
		}
	}
	for _, text := range []string{`{`, `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":"\`, `[`, `"`, `"\`, `-`, "\xef\xbb\xbf{}", ` `, `{"a":[[[{"b":"]}"}]]]}`} {
		f.Add(text, "job.uuid", "Number.x", text, []byte(text), text, text, int32(math.MinInt32), math.MinInt)
	}
	f.Fuzz(func(t *testing.T, text, name, dataType, value string, binary []byte, group, dedup string, delay int32, maxSize int) {
		m := lint.Message{
			Body:            text,
			Attributes:      map[string]lint.Attribute{name: {DataType: dataType, StringValue: value, BinaryValue: binary}, "event_id": {DataType: "String", StringValue: text}},
			GroupID:         group,
			DeduplicationID: dedup,
			DelaySeconds:    delay,
			MaxSize:         maxSize,
		}
		got := lint.Check(m)
		require.Equal(t, got, lint.Check(m), "the same message has the same findings")

		broken := map[string]bool{}
		for _, finding := range got {
			rule, ok := lint.Lookup(finding.Rule)
			require.True(t, ok, finding.Rule)
			broken[rule.ID] = true
			assert.NotEmpty(t, finding.Field)
			assert.NotEmpty(t, finding.Message)
			assert.NotEmpty(t, finding.Fix)
			assert.NotEmpty(t, finding.String())
			assert.GreaterOrEqual(t, finding.Offset, -1)
			assert.LessOrEqual(t, finding.Offset, len(text))
		}
		// Package canonicaljson and the rules agree on canonical texts.
		canonical, err := canonicaljson.CanonicalizeStrict([]byte(text))
		assert.Equal(t, err != nil, broken["SF030"] || broken["SF031"] || broken["SF032"], "%v", err)
		assert.Equal(t, err == nil && string(canonical) != text, broken["SF033"])
		assert.Equal(t, group == "", broken["SF009"])
		assert.Equal(t, delay != 0, broken["SF011"])
	})
}
