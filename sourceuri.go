package sqsfifo

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

const uriField = "source_uri"

// defaultPorts are dropped from a source URI, which names the same source with
// and without them.
var defaultPorts = map[string]string{"http": "80", "https": "443", "ftp": "21", "sftp": "22"}

// normalizeURI returns the one spelling of an absolute URI that takes part in
// the key (RFC 3986 section 6.2.2 and 6.2.3). Its errors never quote the URI.
func normalizeURI(raw string, parameters []string) (string, error) {
	raw = strings.TrimSpace(raw)
	refuse := func(rule string) (string, error) { return "", &KeyError{Field: uriField, Rule: rule} }
	if raw == "" {
		return refuse("empty; use the absolute URI of the primary input, such as https://host/path or s3://bucket/key")
	}
	if rule := componentRule(raw); rule != "" {
		return refuse(rule)
	}
	u, err := url.Parse(raw)
	if err != nil {
		// url.Error quotes the whole URL; its cause does not.
		var parse *url.Error
		if errors.As(err, &parse) && isEscapeError(parse.Err) {
			return refuse("a % that is not followed by two hexadecimal digits; write it as %25")
		}
		return refuse("not a URI; use an absolute one, such as https://host/path or s3://bucket/key")
	}
	switch {
	case u.Scheme == "" || u.Opaque != "":
		return refuse("not absolute; use https://host/path, s3://bucket/key or file:///path")
	case u.User != nil:
		return refuse("holds user info, which is a secret; remove it, credentials are no part of the identity")
	case u.Hostname() == "" && (u.Host != "" || u.Scheme != "file"):
		return refuse("without a host; use https://host/path, s3://bucket/key or file:///path")
	}
	host, err := normalizeHost(u)
	if err != nil {
		return "", err
	}
	query, err := normalizeQuery(u.RawQuery, parameters)
	if err != nil {
		return "", err
	}
	// RawPath is the path as written wherever that differs from the default
	// encoding, which would confuse %2F with a slash.
	path := u.RawPath
	if path == "" {
		path = u.EscapedPath()
	}
	path = removeDotSegments(normalizeEscapes(path))
	if path == "" {
		path = "/"
	}
	return u.Scheme + "://" + host + path + query, nil
}

func isEscapeError(err error) bool {
	var e url.EscapeError
	return errors.As(err, &e)
}

func normalizeHost(u *url.URL) (string, error) {
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if strings.Contains(host, ":") {
		a, err := netip.ParseAddr(host)
		if err != nil {
			return "", &KeyError{Field: uriField, Rule: "host is no IP address; write an IPv6 address in brackets"}
		}
		host = "[" + a.String() + "]"
	} else if strings.ContainsFunc(host, func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune("-._", r) }) {
		return "", &KeyError{Field: uriField, Rule: "host holds other than letters, digits, '-', '.' and '_'; write an international name in its xn-- form"}
	}
	if port != "" && port != defaultPorts[u.Scheme] {
		host += ":" + port
	}
	return host, nil
}

// normalizeQuery returns the declared parameters, sorted, with their "?".
func normalizeQuery(raw string, declared []string) (string, error) {
	if raw == "" {
		return "", nil
	}
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
			return "", &KeyError{Field: uriField, Rule: "query with a % that is not followed by two hexadecimal digits; write it as %25"}
		case isSignature(name):
			return "", &KeyError{Field: uriField, Rule: "a signed URL, which is a secret and changes with each signing; use the URI without its signature"}
		case !slices.Contains(declared, name) && !hasValue:
			return "", &KeyError{Field: uriField, Rule: "a query parameter without a value is not declared; remove it, or name it in QueryParameters if it tells two sources apart"}
		case !slices.Contains(declared, name):
			return "", &KeyError{Field: uriField, Rule: fmt.Sprintf("query parameter %s is not declared; remove it, or name it in QueryParameters if it tells two sources apart", shorten(name))}
		}
		text := escape(name)
		if hasValue {
			text += "=" + escape(value)
		}
		pairs = append(pairs, text)
	}
	if len(pairs) == 0 {
		return "", nil
	}
	slices.Sort(pairs)
	return "?" + strings.Join(pairs, "&"), nil
}

// isSignature reports whether a query parameter is part of a presigned URL of
// the large object stores.
func isSignature(name string) bool {
	n := strings.ToLower(name)
	switch n {
	case "signature", "sig", "awsaccesskeyid", "googleaccessid", "key-pair-id", "policy", "token", "access_token":
		return true
	}
	return strings.HasPrefix(n, "x-amz-") || strings.HasPrefix(n, "x-goog-")
}

// shorten quotes a name for an error text, at most 32 bytes of it.
func shorten(s string) string {
	const most = 32
	if len(s) > most {
		return fmt.Sprintf("%q...", s[:most])
	}
	return fmt.Sprintf("%q", s)
}

// escape encodes all but the unreserved characters of RFC 3986 section 2.3.
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

// normalizeEscapes decodes the escapes of unreserved characters, writes the
// others in upper case (RFC 3986 section 6.2.2) and encodes what may not stand
// in a path. Each "%" of its input is followed by two hexadecimal digits, as
// url.Parse has checked.
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

// removeDotSegments is RFC 3986 section 5.2.4 for absolute paths.
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
