package directive_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/directive"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		comment string
		rules   []string
		foreign bool
		silent  bool // Parse must return neither a directive nor a fault
		fault   string
	}{
		{comment: "//sqsfifo:ignore SF002 -- two deliveries are wanted", rules: []string{"SF002"}},
		{comment: "//sqsfifo:ignore SF002, SF020 -- both // and a note", rules: []string{"SF002", "SF020"}},
		{comment: "//sqsfifo:ignore\tSF007 -- tab", rules: []string{"SF007"}},
		{comment: "//sqsfifo:ignore SF002", fault: "no reason is given"},
		{comment: "//sqsfifo:ignore SF002 -- ", fault: "no reason is given"},
		{comment: "//sqsfifo:ignore SF002 // -- later", fault: "no reason is given"},
		{comment: "//sqsfifo:ignore -- reason", fault: "no rule is named"},
		{comment: "//sqsfifo:ignore", fault: "no rule is named"},
		{comment: "//sqsfifo:ignored SF002 -- reason", fault: "write //sqsfifo:ignore SF002"},
		{comment: "//sqsfifo:ignore SF050 -- reason", fault: `"SF050" is not a rule on Go source`},
		{comment: "//sqsfifo:ignore sf002 -- reason", fault: `"sf002" is not a rule`},
		{comment: "// sqsfifo:ignore SF002 -- reason", fault: "without a space"},
		{comment: "//lint:ignore SF002 reason", rules: []string{"SF002"}, foreign: true},
		{comment: "//lint:ignore SA1000,SF003 reason", rules: []string{"SF003"}, foreign: true},
		{comment: "//lint:ignore SF002", fault: "give a reason"},
		{comment: "//lint:ignore SA1000", silent: true},
		{comment: "//nolint", foreign: true},
		{comment: "//nolint:sqsfifo", foreign: true},
		{comment: "// nolint:errcheck,sqsfifo // reason", foreign: true},
		{comment: "//nolint:all reason", foreign: true},
		{comment: "//nolint:errcheck", silent: true},
		{comment: "//nolinter", silent: true},
		{comment: "//nolint // reason", foreign: true},
		{comment: "// see sqsfifo:ignore", silent: true},
		{comment: "/*sqsfifo:ignore SF002 -- reason*/", silent: true},
	} {
		t.Run(c.comment, func(t *testing.T) {
			d, fault := directive.Parse(c.comment)
			if c.fault != "" {
				assert.Nil(t, d)
				assert.Contains(t, fault, c.fault)
				return
			}
			require.Empty(t, fault)
			if c.silent {
				assert.Nil(t, d)
				return
			}
			require.NotNil(t, d)
			assert.Equal(t, c.rules, d.Rules)
			assert.Equal(t, c.foreign, d.Foreign)
			assert.Equal(t, c.rules == nil || c.rules[0] == "SF002", d.Covers("SF002"))
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("//sqsfifo:ignore SF002 -- reason")
	f.Add("//lint:ignore SF002 reason")
	f.Add("//nolint:sqsfifo")
	f.Fuzz(func(t *testing.T, comment string) {
		d, fault := directive.Parse(comment)
		if d != nil && fault != "" {
			t.Fatal("a directive that silences has no fault")
		}
		if d != nil && !d.Foreign && (len(d.Rules) == 0 || !strings.HasPrefix(comment, "//"+directive.Prefix)) {
			t.Fatal("a directive of ours names its rules")
		}
	})
}
