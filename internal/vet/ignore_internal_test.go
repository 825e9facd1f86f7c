package vet

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestIgnoresCompliance(t *testing.T) {
	for comment, want := range map[string]struct{ native, ok bool }{
		"//sqsfifo:ignore SF020 -- a demonstration":         {true, true},
		"//sqsfifo:ignore SF002,SF020 -- a demonstration":   {true, true},
		"//sqsfifo:ignore\tSF020\t-- a demonstration":       {true, true},
		"//sqsfifo:ignore SF020 --":                         {true, false},
		"//sqsfifo:ignore SF020 a demonstration":            {true, false},
		"//sqsfifo:ignore SF002 -- SF020 is another rule":   {true, false},
		"//sqsfifo:ignore SF0200 -- a demonstration":        {true, false},
		"//sqsfifo:ignore SF020,SF999 -- no such rule":      {true, false},
		"//sqsfifo:ignore SF020,SF033 -- not on source":     {true, false},
		"//sqsfifo:ignored SF020 -- no directive":           {},
		"// sqsfifo:ignore SF020 -- no directive":           {},
		"/* sqsfifo:ignore SF020 -- no directive */":        {},
		"//lint:ignore SF020 a demonstration":               {false, true},
		"//lint:ignore SA1000,SF020 a demonstration":        {false, true},
		"//lint:ignore SF020":                               {},
		"//lint:ignore SA1000 SF020":                        {},
		"//nolint":                                          {false, true},
		"//nolint // a demonstration":                       {false, true},
		"//nolint:all":                                      {false, true},
		"//nolint:errcheck, sqsfifo // a demonstration":     {false, true},
		"//nolint:errcheck // sqsfifo":                      {},
		"//nolinter":                                        {},
		"// an SF020 of which nothing is said, sqsfifo too": {},
	} {
		native, ok := ignoresCompliance(comment)
		assert.Equal(t, want.ok, ok, comment)
		if ok {
			assert.Equal(t, want.native, native, comment)
		}
	}
}

func FuzzIgnoresCompliance(f *testing.F) {
	f.Add("//sqsfifo:ignore SF020 -- a demonstration")
	f.Add("//lint:ignore SA1000,SF020 a demonstration")
	f.Add("//nolint:errcheck,sqsfifo // a demonstration")
	f.Fuzz(func(t *testing.T, comment string) {
		_, ok := ignoresCompliance(comment)
		if ok {
			assert.True(t, strings.Contains(comment, "SF020") || strings.HasPrefix(comment, "//nolint"), "%q", comment)
		}
	})
}
