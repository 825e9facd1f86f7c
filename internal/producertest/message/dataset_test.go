package message

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
)

// All spellings of a source URI in one row of the table give the same key. URIs in
// different rows give different keys.
func TestIdempotencyKeyGroupsSpellings(t *testing.T) {
	declared := []string{"year", "state"}
	groups := []struct {
		name string
		uris []string
	}{
		{"plain", []string{
			"https://example.org/a/b.csv", " https://example.org/a/b.csv\n", "HTTPS://Example.ORG/a/b.csv",
			"https://example.org:443/a/b.csv", "https://example.org/a/b.csv#part", "https://example.org/a/./x/../b.csv",
			"https://example.org/%61/b%2Ecsv", "https://example.org/../a/b.csv", "https://example.org/a/b.csv?", "https://example.org/a/b.csv?&",
			"https://example.org/a/x/%2e%2E/b.csv",
		}},
		{"case of the path", []string{"https://example.org/A/b.csv"}},
		{"scheme", []string{"http://example.org/a/b.csv", "http://example.org:80/a/b.csv"}},
		{"port", []string{"https://example.org:8443/a/b.csv"}},
		{"trailing slash", []string{"https://example.org/a/b.csv/", "https://example.org/a/b.csv/.", "https://example.org/a/b.csv/x/.."}},
		{"root", []string{"https://example.org", "https://example.org/", "https://example.org/."}},
		{"escaped slash is no slash", []string{"https://example.org/a%2Fb.csv", "https://example.org/a%2fb.csv"}},
		{"escaped slash beside a blank", []string{"https://example.org/c d%2Fe", "https://example.org/c%20d%2fe"}},
		{"slash beside a blank", []string{"https://example.org/c d/e", "https://example.org/c%20d/e"}},
		{"non-ASCII", []string{"https://example.org/caf\u00e9", "https://example.org/caf%c3%a9", "https://example.org/caf%C3%A9"}},
		{"two slashes", []string{"https://example.org/a//b.csv"}},
		{"query", []string{
			"https://example.org/q?year=2025&state=KS", "https://example.org/q?state=KS&year=2025",
			"https://example.org/q?&st%61te=K%53&year=2025#x",
		}},
		{"other query", []string{"https://example.org/q?year=2024&state=KS"}},
		{"query with a blank", []string{"https://example.org/q?state=New+York", "https://example.org/q?state=New%20York"}},
		{"object store", []string{"s3://bucket/key.csv", "S3://bucket/key.csv"}},
		{"file", []string{"file:///srv/kfm/key.csv"}},
		{"address", []string{"https://[2001:DB8::1]:443/x", "https://[2001:db8:0:0:0:0:0:1]/x"}},
	}
	seen := map[string]string{}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			var want string
			for _, uri := range g.uris {
				got, err := sqsfifo.Dataset{ID: "d", Version: "1.0.0", SourceURI: uri, QueryParameters: declared}.IdempotencyKey()
				require.NoError(t, err, uri)
				if want == "" {
					want = got
				}
				assert.Equal(t, want, got, uri)
			}
			assert.NotContains(t, seen, want, "shares a key with %q", seen[want])
			seen[want] = g.name
		})
	}
}

func TestIdempotencyKeyRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, field, says string
		change            func(*sqsfifo.Dataset)
	}{
		{"no id", "dataset_id", "empty", func(d *sqsfifo.Dataset) { d.ID = "  " }},
		{"bar in id", "dataset_id", `"|"`, func(d *sqsfifo.Dataset) { d.ID = "a|b" }},
		{"bad UTF-8 in id", "dataset_id", "UTF-8", func(d *sqsfifo.Dataset) { d.ID = "a\xff" }},
		{"control in id", "dataset_id", "control character at byte 1", func(d *sqsfifo.Dataset) { d.ID = "a\x00b" }},
		{"no version", "version", "semantic", func(d *sqsfifo.Dataset) { d.Version = "" }},
		{"two numbers", "version", "semantic", func(d *sqsfifo.Dataset) { d.Version = "v10.3" }},
		{"leading zero", "version", "semantic", func(d *sqsfifo.Dataset) { d.Version = "1.02.0" }},
		{"date", "version", "semantic", func(d *sqsfifo.Dataset) { d.Version = "2025-12-04" }},
		{"empty prerelease", "version", "semantic", func(d *sqsfifo.Dataset) { d.Version = "1.0.0-" }},
		{"zero in prerelease", "version", "semantic", func(d *sqsfifo.Dataset) { d.Version = "1.0.0-rc.01" }},
		{"bar in version", "version", `"|"`, func(d *sqsfifo.Dataset) { d.Version = "1.0.0|x" }},
		{"no uri", "source_uri", "empty", func(d *sqsfifo.Dataset) { d.SourceURI = "" }},
		{"relative", "source_uri", "absolute", func(d *sqsfifo.Dataset) { d.SourceURI = "/srv/file.csv" }},
		{"opaque", "source_uri", "absolute", func(d *sqsfifo.Dataset) { d.SourceURI = "urn:isbn:1" }},
		{"no host", "source_uri", "host", func(d *sqsfifo.Dataset) { d.SourceURI = "https:///file.csv" }},
		{"no host but a colon", "source_uri", "host", func(d *sqsfifo.Dataset) { d.SourceURI = "s3://:/file.csv" }},
		{"no host but a port", "source_uri", "host", func(d *sqsfifo.Dataset) { d.SourceURI = "file://:80/file.csv" }},
		{"bar in uri", "source_uri", `"|"`, func(d *sqsfifo.Dataset) { d.SourceURI = "https://h/a|b" }},
		{"bad escape", "source_uri", "%25", func(d *sqsfifo.Dataset) { d.SourceURI = "https://h/100%" }},
		{"bad escape in query", "source_uri", "%25", func(d *sqsfifo.Dataset) { d.SourceURI = "https://h/a?year=%" }},
		{"a query that is a token", "source_uri", "without a value", func(d *sqsfifo.Dataset) { d.SourceURI = "https://h/a?hunter2" }},
		{"undeclared query", "source_uri", `"token_of_session"`, func(d *sqsfifo.Dataset) { d.SourceURI = "https://h/a?token_of_session=hunter2" }},
		{"signed", "source_uri", "signed", func(d *sqsfifo.Dataset) {
			d.SourceURI = "https://h/a?X-Amz-Signature=hunter2"
			d.QueryParameters = []string{"X-Amz-Signature"}
		}},
		{"user info", "source_uri", "secret", func(d *sqsfifo.Dataset) { d.SourceURI = "https://me:hunter2@h/a" }},
		{"user info in what does not parse", "source_uri", "not a URI", func(d *sqsfifo.Dataset) { d.SourceURI = "https://me:hunter2@h:port/a" }},
		{"international host", "source_uri", "xn--", func(d *sqsfifo.Dataset) { d.SourceURI = "https://caf\u00e9.example/a" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := producertest.Storms
			tc.change(&d)
			_, err := d.IdempotencyKey()
			var refused *sqsfifo.InvalidError
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, tc.field, refused.Field)
			assert.Contains(t, refused.Rule, tc.says)
			assert.NotContains(t, err.Error(), "hunter2", "an error must not repeat a secret")
		})
	}
}

func TestVersionForms(t *testing.T) {
	for _, v := range []string{"v10.3.1", "10.3.1", " V10.3.1 "} {
		d := producertest.Storms
		d.Version = v
		got, err := d.IdempotencyKey()
		require.NoError(t, err)
		assert.Equal(t, producertest.StormsKey, got, v)
	}
	for _, v := range []string{"1.0.0-rc.1", "1.0.0-rc.1+build.007", "0.0.0", "1.0.0--"} {
		d := producertest.Storms
		d.Version = v
		_, err := d.IdempotencyKey()
		assert.NoError(t, err, v)
	}
}

func TestVerify(t *testing.T) {
	require.NoError(t, producertest.Storms.Verify(producertest.StormsKey))

	other := producertest.Storms
	other.Version = "v10.3.2"
	require.ErrorIs(t, other.Verify(producertest.StormsKey), sqsfifo.ErrKeyMismatch)

	for name, key := range map[string]string{
		"63 digits, as in the KFM key document": "sha256:31b1ee2f4dd9030c95f84a78047bcdfd7b8a38ef9c7f0c31bde1dca55ed9012",
		"no prefix":                             strings.TrimPrefix(producertest.StormsKey, "sha256:"),
		"upper case":                            "sha256:" + strings.ToUpper(strings.TrimPrefix(producertest.StormsKey, "sha256:")),
		"no digits":                             "sha256:" + strings.Repeat("g", 64),
		"empty":                                 "",
	} {
		var bad *sqsfifo.InvalidError
		require.ErrorAs(t, producertest.Storms.Verify(key), &bad, name)
	}
}

// A dataset and its normal form have the same idempotency key.
func FuzzIdempotencyKey(f *testing.F) {
	f.Add("d", "1.0.0", "https://example.org:443/a/../b%2f%61 c?x=1+2&y#z")
	f.Add(" id ", "v1.0.0-rc.1", "s3://bucket/key")
	f.Add("d", "1.0.0", "file:///a/./b")
	f.Fuzz(func(t *testing.T, id, version, uri string) {
		d := sqsfifo.Dataset{ID: id, Version: version, SourceURI: uri, QueryParameters: []string{"x", "y"}}
		key, err := d.IdempotencyKey()
		if err != nil {
			var refused *sqsfifo.InvalidError
			require.ErrorAs(t, err, &refused)
			return
		}
		require.NoError(t, d.Verify(key))
		normal, err := d.Normalize()
		require.NoError(t, err)
		again, err := normal.IdempotencyKey()
		require.NoError(t, err, "%+v", normal)
		require.Equal(t, key, again, "%+v", normal)
	})
}
