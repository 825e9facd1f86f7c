// Package sourceuri defines the normal form of a source URI: the one spelling that
// idempotency keys contain. Normalize is a pure function and safe for concurrent use. The
// package is independent of datasets and keys. It does not store, log or quote a URI. It
// deliberately uses no library for the normal form, because an upgrade may change the
// form and with it stored idempotency keys. Only the split into components and the text
// of an IPv6 address come from the standard library; the tests pin both.
package sourceuri

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Normalize returns the normal form of an absolute URI (RFC 3986 sections 6.2.2 and
// 6.2.3). If the URI cannot identify a source, the result `rule` has an error text instead.
// Exactly one of the two results is empty.
//
// The normal form has:
//
//   - no surrounding white space and no fragment
//   - scheme and host in lower case, without the default port of the scheme
//   - dot segments resolved
//   - percent-encoding in upper case: in the path only where necessary, in the names and
//     values of query parameters for all except the unreserved characters of RFC 3986
//   - the query parameters sorted
//
// The normal form of a normal form is the same text.
//
// Normalize refuses a URI with a query parameter that `parameters` does not list. If
// this query parameter has a value, the error text may quote its name or the beginning
// of its name. An error text quotes no other part of a URI, because any other part may
// be a secret. A query parameter without a value may be a secret, such as a token. With
// "=" at the end, it may be a token in base64.
func Normalize(uri string, parameters []string) (normal, rule string) {
	uri = strings.TrimSpace(uri)
	if uri == "" {
		return "", "empty; use the absolute URI of the primary input, such as https://host/path or s3://bucket/key"
	}
	if rule := textRule(uri); rule != "" {
		return "", rule
	}
	u, err := url.Parse(uri)
	if err != nil {
		// Do not return err: its text quotes the URI.
		var escape url.EscapeError
		if errors.As(err, &escape) {
			return "", "contains a % that is not followed by two hexadecimal digits; write it as %25"
		}
		return "", "not a URI; use an absolute one, such as https://host/path or s3://bucket/key"
	}
	switch {
	case u.Scheme == "" || u.Opaque != "" || u.Host == "" && u.Path == "" && u.Scheme == "file":
		return "", "not absolute; use https://host/path, s3://bucket/key or file:///path"
	case u.User != nil:
		return "", "contains user info, which is a secret; remove it, credentials are not part of the identity"
	case u.Hostname() == "" && (u.Host != "" || u.Scheme != "file"):
		return "", "without a host; use https://host/path, s3://bucket/key or file:///path"
	}
	host, rule := normalizeHost(u)
	if rule != "" {
		return "", rule
	}
	query, rule := normalizeQuery(u.RawQuery, parameters)
	if rule != "" {
		return "", rule
	}
	// The decoded u.Path cannot distinguish %2F from a slash. u.RawPath may be empty.
	path := u.RawPath
	if path == "" {
		path = u.EscapedPath()
	}
	path = removeDotSegments(normalizeEscapes(path))
	if path == "" {
		path = "/"
	}
	return u.Scheme + "://" + host + path + query, ""
}

// textRule checks the characters of a URI, which becomes part of an idempotency key. It
// returns the text of the broken rule, or "" if all characters are allowed.
func textRule(uri string) string {
	if strings.Contains(uri, "|") {
		return `contains "|", which joins the components; two different datasets could share one key, encode it as %7C`
	}
	if !utf8.ValidString(uri) {
		return "not valid UTF-8; percent-encode the bytes"
	}
	if i := strings.IndexFunc(uri, unicode.IsControl); i >= 0 {
		return fmt.Sprintf("control character at byte %d; remove it", i)
	}
	return ""
}

func normalizeHost(u *url.URL) (host, rule string) {
	host = lower(u.Hostname())
	if strings.HasPrefix(u.Host, "[") {
		address, err := netip.ParseAddr(host)
		if err != nil {
			return "", "host is not an IP address; write an IPv6 address in brackets"
		}
		if address.Zone() != "" {
			return "", "host has an IPv6 zone, which has a meaning on one machine only; use an address without a zone"
		}
		host = "[" + address.String() + "]"
	} else if strings.ContainsFunc(host, isNotHost) {
		return "", "host contains a character other than letters, digits, '-', '.' and '_'; write an IPv6 address in brackets and an international name in its xn-- form"
	}
	if port := u.Port(); port != "" && port != defaultPort(u.Scheme) {
		host += ":" + port
	}
	return host, ""
}

// lower returns s with ASCII letters in lower case. The letters of other scripts stay:
// strings.ToLower makes a "k" of the Kelvin sign.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

func isNotHost(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune("-._", r) }

func defaultPort(scheme string) string {
	switch scheme {
	case "http":
		return "80"
	case "https":
		return "443"
	case "ftp":
		return "21"
	case "sftp":
		return "22"
	default:
		return ""
	}
}

// normalizeQuery returns the normal form of a query: a "?" and the sorted parameters, or ""
// without parameters. For a query that breaks a rule, it returns only the rule's text.
func normalizeQuery(raw string, declared []string) (query, rule string) {
	var pairs []string
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		rawName, rawValue, hasValue := strings.Cut(pair, "=")
		name, errName := url.QueryUnescape(rawName)
		value, errValue := url.QueryUnescape(rawValue)
		switch {
		case errName != nil || errValue != nil:
			return "", "query contains a % that is not followed by two hexadecimal digits; write it as %25"
		case isSignature(name):
			return "", "a signed URL, which is a secret and changes with each signing; use the URI without its signature"
		case !slices.Contains(declared, name) && strings.Trim(value, "=") == "":
			// Do not quote the name: a parameter without a value may be a secret token, also
			// a token in base64 with "=" at its end.
			return "", "a query parameter without a value is not declared; remove it, or add it to QueryParameters if it distinguishes two sources"
		case !slices.Contains(declared, name):
			return "", fmt.Sprintf("query parameter %s is not declared; remove it, or add it to QueryParameters if it distinguishes two sources", shorten(name))
		}
		text := escape(name)
		if hasValue {
			text += "=" + escape(value)
		}
		pairs = append(pairs, text)
	}
	if len(pairs) == 0 {
		return "", ""
	}
	slices.Sort(pairs)
	return "?" + strings.Join(pairs, "&"), ""
}

// isSignature reports whether a query parameter is part of a presigned URL of S3,
// CloudFront, Google Cloud Storage or Azure Storage, or is named like an access token.
// Normalize refuses such a parameter even if the caller declares it.
func isSignature(name string) bool {
	n := lower(name)
	switch n {
	case "signature", "sig", "awsaccesskeyid", "googleaccessid", "key-pair-id", "policy", "token", "access_token":
		return true
	}
	return strings.HasPrefix(n, "x-amz-") || strings.HasPrefix(n, "x-goog-")
}

func shorten(name string) string {
	const most = 32
	if len(name) > most {
		return fmt.Sprintf("%q...", name[:most])
	}
	return fmt.Sprintf("%q", name)
}

// escape percent-encodes all characters of s except the unreserved characters of RFC 3986
// section 2.3.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if isUnreserved(s[i]) {
			b.WriteByte(s[i])
		} else {
			writeEscape(&b, s[i])
		}
	}
	return b.String()
}

func writeEscape(b *strings.Builder, c byte) {
	const upperHex = "0123456789ABCDEF"
	b.WriteByte('%')
	b.WriteByte(upperHex[c>>4])
	b.WriteByte(upperHex[c&15])
}

func isUnreserved(c byte) bool {
	return isAlphanumeric(rune(c)) || strings.IndexByte("-._~", c) >= 0
}

func isAlphanumeric(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}

// normalizeEscapes decodes the escapes of unreserved characters, writes the other escapes
// in uppercase (RFC 3986 section 6.2.2) and encodes characters forbidden in a path.
// url.Parse has checked the escapes.
func normalizeEscapes(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		c := path[i]
		escaped := c == '%' && i+2 < len(path)
		if escaped {
			c = unhex(path[i+1])<<4 | unhex(path[i+2])
			i += 2
		}
		if isUnreserved(c) || !escaped && strings.IndexByte("/:@!$&'()*+,;=", c) >= 0 {
			b.WriteByte(c)
		} else {
			writeEscape(&b, c)
		}
	}
	return b.String()
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	default:
		return c - 'a' + 10
	}
}

// removeDotSegments resolves the segments "." and ".." of an absolute path, as in RFC
// 3986 section 5.2.4.
func removeDotSegments(path string) string {
	segments := strings.Split(path, "/")
	kept := make([]string, 0, len(segments))
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
		case ".", "..":
			if s == ".." && len(kept) > 1 {
				kept = kept[:len(kept)-1]
			}
			if last {
				kept = append(kept, "")
			}
		default:
			kept = append(kept, s)
		}
	}
	return strings.Join(kept, "/")
}
