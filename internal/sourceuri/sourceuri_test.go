package sourceuri_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/sourceuri"
)

// Each row has the normal form of one source and several URIs for this source, which must
// all get the normal form. No two rows may have the same normal form. The test states each
// normal form literally, because stored idempotency keys depend on every byte.
func TestNormalForms(t *testing.T) {
	declared := []string{"year", "state", "\u00fc", "flag"}
	seen := map[string]string{}
	for _, g := range []struct {
		name, want string
		uris       []string
	}{
		{"plain", "https://example.org/a/b.csv", []string{
			"https://example.org/a/b.csv", " https://example.org/a/b.csv\n", "HTTPS://Example.ORG/a/b.csv",
			"https://example.org:443/a/b.csv", "https://example.org:/a/b.csv", "https://example.org/a/b.csv#part", "https://example.org/a/./x/../b.csv",
			"https://example.org/%61/b%2Ecsv", "https://example.org/../a/b.csv", "https://example.org/a/b.csv?", "https://example.org/a/b.csv?&",
			"https://example.org/a/x/%2e%2E/b.csv", "\u00a0https://example.org/a/b.csv\u2003",
		}},
		{"case of the path", "https://example.org/A/b.csv", []string{"https://example.org/A/b.csv"}},
		{"scheme", "http://example.org/a/b.csv", []string{"http://example.org/a/b.csv", "http://example.org:80/a/b.csv"}},
		{"FTP", "ftp://example.org/a", []string{"ftp://example.org:21/a", "FTP://example.org/a"}},
		{"SFTP", "sftp://example.org/a", []string{"sftp://example.org:22/a", "sftp://example.org/a"}},
		{"port", "https://example.org:8443/a/b.csv", []string{"https://example.org:8443/a/b.csv"}},
		{"port of another scheme", "https://example.org:80/a/b.csv", []string{"https://example.org:80/a/b.csv"}},
		{"trailing slash", "https://example.org/a/b.csv/", []string{
			"https://example.org/a/b.csv/", "https://example.org/a/b.csv/.", "https://example.org/a/b.csv/x/..",
		}},
		{"root", "https://example.org/", []string{"https://example.org", "https://example.org/", "https://example.org/.", "https://example.org/a/.."}},
		{"root with a query", "https://example.org/?year=1", []string{"https://example.org?year=1", "https://example.org/?year=1#x"}},
		{"an escaped slash is not a slash", "https://example.org/a%2Fb.csv", []string{"https://example.org/a%2Fb.csv", "https://example.org/a%2fb.csv"}},
		{"escaped slash after a space", "https://example.org/c%20d%2Fe", []string{"https://example.org/c d%2Fe", "https://example.org/c%20d%2fe"}},
		{"slash after a space", "https://example.org/c%20d/e", []string{"https://example.org/c d/e", "https://example.org/c%20d/e"}},
		{"characters that a path may hold", "https://example.org/:@!$&'()*+,;=-._~", []string{"https://example.org/:@!$&'()*+,;=-._~", "https://example.org/:@!$&'()*+,;=%2d%2E%5f%7E"}},
		{"their escapes are other paths", "https://example.org/%3A%40", []string{"https://example.org/%3a%40"}},
		{"characters that it may not hold", "https://example.org/%22%3C%3E%5B%5D%5C%5E%60%7B%7C%7D", []string{"https://example.org/\"<>[]\\^`{%7c}"}},
		{"non-ASCII", "https://example.org/caf%C3%A9", []string{"https://example.org/caf\u00e9", "https://example.org/caf%c3%a9", "https://example.org/caf%C3%A9"}},
		{"two slashes", "https://example.org/a//b.csv", []string{"https://example.org/a//b.csv", "https://example.org/a//x/../b.csv"}},
		{"query", "https://example.org/q?state=KS&year=2025", []string{
			"https://example.org/q?year=2025&state=KS", "https://example.org/q?state=KS&year=2025",
			"https://example.org/q?&st%61te=K%53&year=2025#x",
		}},
		{"other query", "https://example.org/q?state=KS&year=2024", []string{"https://example.org/q?year=2024&state=KS"}},
		{"query with a space", "https://example.org/q?state=New%20York", []string{"https://example.org/q?state=New+York", "https://example.org/q?state=New%20York"}},
		{"query with a plus sign", "https://example.org/q?state=New%2BYork", []string{"https://example.org/q?state=New%2bYork"}},
		{"query with an equals sign", "https://example.org/q?state=a%3Db%26c", []string{"https://example.org/q?state=a=b%26c"}},
		{"repeated parameter", "https://example.org/q?year=1&year=2", []string{"https://example.org/q?year=2&year=1"}},
		{"parameter without a value", "https://example.org/q?flag", []string{"https://example.org/q?flag"}},
		{"parameter with an empty value", "https://example.org/q?flag=", []string{"https://example.org/q?flag="}},
		{"non-ASCII query", "https://example.org/q?%C3%BC=%C3%BC", []string{"https://example.org/q?\u00fc=%c3%bc"}},
		{"object store", "s3://bucket/key.csv", []string{"s3://bucket/key.csv", "S3://bucket/key.csv"}},
		{"underscore in a host", "s3://my_bucket.x-y/", []string{"s3://My_Bucket.x-y"}},
		{"file", "file:///srv/kfm/key.csv", []string{"file:///srv/kfm/key.csv", "file:/srv/kfm/key.csv"}},
		{"file on a host", "file://nas/srv/key.csv", []string{"file://NAS/srv/key.csv"}},
		{"address", "https://[2001:db8::1]/x", []string{"https://[2001:DB8::1]:443/x", "https://[2001:db8:0:0:0:0:0:1]/x"}},
		{"address with a port", "https://[2001:db8::1]:8443/x", []string{"https://[2001:DB8:0::1]:8443/x"}},
		{"IPv4 address in an IPv6 address", "https://[::ffff:192.0.2.1]/x", []string{"https://[::FFFF:C000:0201]/x"}},
	} {
		t.Run(g.name, func(t *testing.T) {
			for _, uri := range g.uris {
				got, rule := sourceuri.Normalize(uri, declared)
				assert.Empty(t, rule, uri)
				assert.Equal(t, g.want, got, uri)
			}
			again, rule := sourceuri.Normalize(g.want, declared)
			assert.Empty(t, rule)
			assert.Equal(t, g.want, again, "the normal form of a normal form")
			assert.NotContains(t, seen, g.want, "is also the normal form of %q", seen[g.want])
			seen[g.want] = g.name
		})
	}
}

func TestRefusals(t *testing.T) {
	long := strings.Repeat("n", 40)
	for _, tc := range []struct{ name, uri, says string }{
		{"empty", "", "empty"},
		{"white space", " \n", "empty"},
		{"relative", "/srv/file.csv", "not absolute"},
		{"no scheme", "//h/file.csv", "not absolute"},
		{"opaque", "urn:isbn:1", "not absolute"},
		{"no host", "https:///file.csv", "without a host"},
		{"no host but a colon", "s3://:/file.csv", "without a host"},
		{"no host but a port", "file://:80/file.csv", "without a host"},
		{"bar", "https://h/a|hunter2", `contains "|"`},
		{"bad UTF-8", "https://h/a\xffhunter2", "not valid UTF-8"},
		{"control character", "https://h/a\x00hunter2", "control character at byte 11"},
		{"control character after white space", "  https://h/a\u0085hunter2", "control character at byte 11"},
		{"bad escape", "https://h/hunter2%", "%25"},
		{"bad escape in a query", "https://h/a?year=hunter2%", "%25"},
		{"bad escape in the name of a parameter", "https://h/a?%hunter2=1", "%25"},
		{"a query that is a token", "https://h/a?hunter2", "without a value"},
		{"a query that is a token in base64", "https://h/a?c2VjcmV0Cg==", "query parameter without a value"},
		{"a query that is a token in base64, half encoded", "https://h/a?c2VjcmV0Cg=%3D", "query parameter without a value"},
		{"a query that is a token with one =", "https://h/a?c2VjcmV0Cg=", "query parameter without a value"},
		{"undeclared parameter", "https://h/a?token_of_session=hunter2", `"token_of_session" is not declared`},
		{"long undeclared parameter", "https://h/a?" + long + "=hunter2", `"` + long[:32] + `"... is not declared`},
		{"user info", "https://me:hunter2@h/a", "user info"},
		{"empty user info", "https://@h/a", "user info"},
		{"user info in what does not parse", "https://me:hunter2@h:port/a", "not a URI"},
		{"international host", "https://caf\u00e9.example/hunter2", "xn--"},
		{"host with a comma", "https://a,b/hunter2", "character other than"},
		{"Kelvin sign in a host", "https://\u212a.example/hunter2", "xn--"},
		{"address without brackets", "s3://::1/hunter2", "in brackets"},
		{"address and port without brackets", "s3://::1:80/hunter2", "in brackets"},
		{"file without a path", "file:", "not absolute"},
		{"file with empty host and path", "file://", "not absolute"},
		{"address without a meaning", "https://[1:2:3]/hunter2", "not a URI"},
		{"IPv6 zone", "https://[fe80::1%25hunter2]/a", "zone"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			normal, rule := sourceuri.Normalize(tc.uri, []string{"year"})
			assert.Empty(t, normal)
			assert.Contains(t, rule, tc.says)
			assert.NotContains(t, rule, "hunter2", "a rule must not repeat a secret")
		})
	}
}

// Normalize refuses a signed URL even if the caller declares the parameters of the
// signature.
func TestSignedURLsAreRefused(t *testing.T) {
	for _, name := range []string{
		"X-Amz-Signature", "x-amz-date", "X-Goog-Signature", "Signature", "sig", "AWSAccessKeyId", "GoogleAccessId",
		"Key-Pair-Id", "Policy", "token", "access_token", "%73ig",
	} {
		plain, err := url.QueryUnescape(name)
		require.NoError(t, err)
		normal, rule := sourceuri.Normalize("https://h/a?"+name+"=hunter2", []string{plain})
		assert.Empty(t, normal, name)
		assert.Contains(t, rule, "signed", name)
		assert.NotContains(t, rule, "hunter2", name)
	}
}

func TestNormalizeLeavesTheParametersAlone(t *testing.T) {
	declared := []string{"b", "a"}
	_, rule := sourceuri.Normalize("https://h/?b=1&a=2", declared)
	assert.Empty(t, rule)
	assert.Equal(t, []string{"b", "a"}, declared)
}

// FuzzNormalize checks that Normalize returns either a normal form or an error text. The
// normal form of a normal form must be the same text. The normal form must not change if
// white space is added around the URI, or if a fragment is appended.
func FuzzNormalize(f *testing.F) {
	for _, uri := range []string{
		"https://example.org:443/a/../b%2f%61 c?x=1+2&y#z", "s3://bucket/key", "file:///a/./b", "file:a", "https://[fe80::1%25eth0]/a",
		"https://[::FFFF:1.2.3.4]:80/%7c?=&x", "HTTP://\u212A/..//.?x=%zz", "https://h:0443/*?x;y=1&x&x=", "urn:x", "https://me:pw@h/",
	} {
		f.Add(uri, "x", "y")
	}
	f.Fuzz(func(t *testing.T, uri, a, b string) {
		declared := []string{a, b}
		normal, rule := sourceuri.Normalize(uri, declared)
		require.NotEqual(t, normal == "", rule == "", "normal form %q, rule %q", normal, rule)
		if rule != "" {
			return
		}
		again, rule := sourceuri.Normalize(normal, declared)
		require.Empty(t, rule, normal)
		require.Equal(t, normal, again)

		u, err := url.Parse(normal)
		require.NoError(t, err)
		require.Equal(t, strings.ToLower(u.Scheme+u.Host), u.Scheme+u.Host)
		require.Empty(t, u.Fragment)
		for i := range len(normal) {
			require.True(t, normal[i] > ' ' && normal[i] < 0x7f && normal[i] != '|', "%q", normal)
		}

		trimmed := strings.TrimSpace(uri)
		for _, other := range []string{"\t" + uri + " ", trimmed + "#fragment"} {
			if strings.HasSuffix(other, "#fragment") && strings.Contains(trimmed, "#") {
				continue
			}
			same, rule := sourceuri.Normalize(other, declared)
			require.Empty(t, rule, other)
			require.Equal(t, normal, same, other)
		}
	})
}

func BenchmarkNormalize(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, rule := sourceuri.Normalize("HTTPS://WWW.NCEI.NOAA.GOV:443/storm-events/file_1950_2025.csv", nil); rule != "" {
			b.Fatal(rule)
		}
	}
}

func ExampleNormalize() {
	fmt.Println(sourceuri.Normalize("HTTPS://Example.org:443/a/../storm%2Devents?year=2025#top", []string{"year"}))
	// Output: https://example.org/storm-events?year=2025
}
