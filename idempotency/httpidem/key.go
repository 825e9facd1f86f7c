package httpidem

import (
	"errors"
	"fmt"
	"strings"
)

// MaxKey is the length limit of a key in bytes, without quotes and escapes.
const MaxKey = 255

const (
	keyHeader      = "Idempotency-Key"
	replayedHeader = "Idempotency-Replayed"
)

// parseKey parses the values of the Idempotency-Key header. There must be at least one
// value. A key is a structured-field string (RFC 8941, section 3.3.3) or the same text
// without quotes. Errors do not contain the key.
func parseKey(values []string) (string, error) {
	if len(values) > 1 {
		return "", fmt.Errorf("the header occurs %d times; send it once", len(values))
	}
	text := strings.Trim(values[0], " \t")
	key, err := text, error(nil)
	if quoted, ok := strings.CutPrefix(text, `"`); ok {
		key, err = unquote(quoted)
	} else {
		err = checkUnquoted(text)
	}
	switch {
	case err != nil:
		return "", err
	case key == "":
		return "", errors.New("the key is empty; use a UUID for each operation")
	case len(key) > MaxKey:
		return "", fmt.Errorf("the key has %d bytes, and at most %d are accepted; use a UUID or a hash", len(key), MaxKey)
	}
	return key, nil
}

// unquote parses a quoted key without its opening quote. In errors, position 0 is the
// opening quote, and s begins at position 1.
func unquote(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' && i == len(s)-1:
			return b.String(), nil
		case c == '"':
			return "", fmt.Errorf("text follows the closing quote at position %d; send one string without parameters", i+1)
		case c == '\\':
			if i++; i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", fmt.Errorf(`the backslash at position %d escapes neither a quote nor a backslash`, i)
			}
			b.WriteByte(s[i])
		case c < ' ' || c > '~':
			return "", fmt.Errorf("byte %#02x at position %d; use printable ASCII", c, i+1)
		default:
			b.WriteByte(c)
		}
	}
	return "", errors.New("the closing quote is missing")
}

// checkUnquoted refuses characters with an ambiguous meaning in a key without quotes. For
// example, a comma may separate two keys: proxies merge two headers in this way.
func checkUnquoted(s string) error {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c > '~' || strings.IndexByte(`",;\`, c) >= 0 {
			return fmt.Errorf("byte %#02x at position %d; use printable ASCII, in double quotes if it has spaces, commas or semicolons", c, i)
		}
	}
	return nil
}
