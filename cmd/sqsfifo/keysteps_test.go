package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sdk "github.com/kansas-frontier-matrix/sqsfifo"
)

// The command explains in steps how it brings each component of a dataset, such as the
// version, into its normal form. Each step changes the result of the step before, and the
// last step ends with the normal form.
func FuzzKeySteps(f *testing.F) {
	for _, uri := range []string{
		"https://example.org/a/b.csv", " HTTPS://Example.ORG:443/a/./x/../%61%2fb.csv#part ", "https://example.org", "s3://Bucket/key",
		"https://example.org/q?year=2025&state=%4bS", "https://example.org/q?state=KS&year=%32025", "https://example.org/a?", "https://[2001:DB8::1]:443/a",
		"https://EXAMPLE.org:8443/../a?state=1", "file:///a/%2e%2e/b", "https://example.org/%2E", "ftp://h:21/é",
	} {
		f.Add(" id ", "1.2.3", uri)
	}
	f.Fuzz(func(t *testing.T, id, version, uri string) {
		given := sdk.Dataset{ID: id, Version: version, SourceURI: uri, QueryParameters: []string{"year", "state"}}
		normal, err := given.Normalize()
		if err != nil {
			return
		}
		steps := keySteps(given, normal)
		for _, c := range []struct{ name, from, to string }{
			{"dataset_id", given.ID, normal.ID},
			{"version", given.Version, normal.Version},
			{"source_uri", given.SourceURI, normal.SourceURI},
		} {
			at := c.from
			for _, s := range steps {
				if s.Component == c.name {
					require.Equal(t, at, s.From)
					assert.NotEqual(t, s.From, s.To)
					at = s.To
				}
			}
			assert.Equal(t, c.to, at, "%s of %+v: %+v", c.name, given, steps)
		}
	})
}
