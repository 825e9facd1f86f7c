package sqsfifo

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/sourceuri"
)

// keyPrefix starts every idempotency key (KFM key specification v10.3.1, "Key shape").
const keyPrefix = "sha256:"

// Dataset names one version of a dataset from one source, the three things that
// the KFM idempotency key is made of (key specification v10.3.1). The other
// fields go to spans as they are and take no part in the key.
type Dataset struct {
	// ID is the dataset's identifier in its STAC or DCAT record. Case matters.
	ID string `json:"dataset_id"`

	// Version is a semantic version: v10.3.1 or 10.3.1, which are the same.
	Version string `json:"version"`

	// SourceURI is the absolute URI of the primary input. It must not carry
	// credentials: user info and signatures are refused, not stored.
	SourceURI string `json:"source_uri"`

	// QueryParameters are the names of the query parameters of SourceURI that
	// distinguish two sources. A query with any other parameter is refused,
	// because noise in it would give one source many keys.
	QueryParameters []string `json:"query_parameters,omitempty"`

	// ArtifactChecksum and CARELabel are carried to telemetry.
	ArtifactChecksum string `json:"artifact_checksum,omitempty"`
	CARELabel        string `json:"care_label,omitempty"`
}

func (d *Dataset) clone() *Dataset {
	if d == nil {
		return nil
	}
	c := *d
	c.QueryParameters = slices.Clone(d.QueryParameters)
	return &c
}

// IdempotencyKey returns the KFM idempotency key of the dataset,
//
//	sha256:hex(SHA-256(dataset_id | version | source_uri))
//
// over the normalised components (key specification v10.3.1; d itself is not
// changed):
//
//   - all are trimmed of white space; "|" is refused in each of them, because
//     two different triples could share one joined text;
//   - the version is a semantic version in its v form;
//   - scheme and host of the URI are lower case, its default port and fragment
//     are dropped, dot segments are resolved, percent-encoding is normalised
//     (RFC 3986 section 6.2.2) and declared query parameters are sorted.
//
// It is a pure function. It returns a [*KeyError] that names the component.
func (d Dataset) IdempotencyKey() (string, error) {
	d, err := d.Normalize()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(d.ID + "|" + d.Version + "|" + d.SourceURI))
	return keyPrefix + hex.EncodeToString(sum[:]), nil
}

// Normalize returns the dataset with ID, Version and SourceURI as its key has them; the
// other fields are unchanged. A dataset and its normal form have the same key. The
// error is that of IdempotencyKey.
func (d Dataset) Normalize() (Dataset, error) {
	id, err := normalizeDatasetID(d.ID)
	if err != nil {
		return Dataset{}, err
	}
	version, err := normalizeVersion(d.Version)
	if err != nil {
		return Dataset{}, err
	}
	uri, rule := sourceuri.Normalize(d.SourceURI, d.QueryParameters)
	if rule != "" {
		return Dataset{}, &KeyError{Field: "source_uri", Rule: rule}
	}
	d.ID, d.Version, d.SourceURI = id, version, uri
	return d, nil
}

// recorded returns the dataset as records and spans name it: with the ID and the
// version that are in its key, so that both join, and the key. A dataset without a key
// is named as it is.
func (d *Dataset) recorded() (id, version, key string) {
	normal, err := d.Normalize()
	if err != nil {
		return d.ID, d.Version, ""
	}
	key, err = normal.IdempotencyKey()
	if err != nil { // a normal form has a key
		return d.ID, d.Version, ""
	}
	return normal.ID, normal.Version, key
}

// Verify recomputes the key and compares. It returns nil when key is the
// dataset's, an error that wraps [ErrKeyMismatch] when it is another's, and a
// [*KeyError] when key is not an idempotency key or the dataset does not have one.
func (d Dataset) Verify(key string) error {
	if _, err := ParseIdempotencyKey(key); err != nil {
		return err
	}
	own, err := d.IdempotencyKey()
	if err != nil {
		return err
	}
	if key != own { // a key that parses has one spelling
		return fmt.Errorf("sqsfifo: %w: got %s, recomputed %s", ErrKeyMismatch, key, own)
	}
	return nil
}

// ParseIdempotencyKey returns the digest in a key of the stored form,
// "sha256:" and 64 lower-case hexadecimal digits. Anything else is a
// [*KeyError]: a key in another spelling would miss its own record.
func ParseIdempotencyKey(key string) ([sha256.Size]byte, error) {
	var sum [sha256.Size]byte
	digits, ok := strings.CutPrefix(key, keyPrefix)
	if !ok {
		return sum, &KeyError{Field: "key", Rule: `does not start with "sha256:"; use what IdempotencyKey returned`}
	}
	if len(digits) != hex.EncodedLen(len(sum)) {
		return sum, &KeyError{Field: "key", Rule: fmt.Sprintf("%d digits after %q, want 64; a SHA-256 has 64", len(digits), keyPrefix)}
	}
	if strings.ToLower(digits) != digits {
		return sum, &KeyError{Field: "key", Rule: "upper-case digits; keys are stored in lower case"}
	}
	if _, err := hex.Decode(sum[:], []byte(digits)); err != nil {
		return sum, &KeyError{Field: "key", Rule: "not hexadecimal; use what IdempotencyKey returned"}
	}
	return sum, nil
}

func normalizeDatasetID(id string) (string, error) {
	const field = "dataset_id"
	id = strings.TrimSpace(id)
	if id == "" {
		return "", &KeyError{Field: field, Rule: "empty; use the identifier of the STAC or DCAT record"}
	}
	if rule := componentRule(id); rule != "" {
		return "", &KeyError{Field: field, Rule: rule}
	}
	return id, nil
}

// componentRule returns the rule that a component of the key breaks, or "".
func componentRule(s string) string {
	if strings.Contains(s, "|") {
		return `holds "|", which joins the components; two different datasets could share one key, encode or rename it`
	}
	return textRule(s)
}

// normalizeVersion returns the v form of a semantic version (semver.org 2.0.0).
func normalizeVersion(version string) (string, error) {
	v := strings.TrimSpace(version)
	if rule := componentRule(v); rule != "" {
		return "", &KeyError{Field: "version", Rule: rule}
	}
	if len(v) > 0 && (v[0] == 'v' || v[0] == 'V') {
		v = v[1:]
	}
	core, build, hasBuild := strings.Cut(v, "+")
	core, pre, hasPre := strings.Cut(core, "-")
	numbers := strings.Split(core, ".")
	ok := len(numbers) == 3 &&
		!slices.ContainsFunc(numbers, func(n string) bool { return !isNumber(n) }) &&
		(!hasPre || areIdentifiers(pre, true)) &&
		(!hasBuild || areIdentifiers(build, false))
	if !ok {
		return "", &KeyError{Field: "version", Rule: "not a semantic version; write it as v10.3.1"}
	}
	return "v" + v, nil
}

// isNumber reports whether s is a decimal number without a leading zero.
func isNumber(s string) bool {
	return isDigits(s) && (s == "0" || s[0] != '0')
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func areIdentifiers(s string, prerelease bool) bool {
	for id := range strings.SplitSeq(s, ".") {
		switch {
		case id == "" || strings.ContainsFunc(id, func(r rune) bool { return !isAlphanumeric(r) && r != '-' }):
			return false
		case prerelease && isDigits(id) && !isNumber(id):
			return false
		}
	}
	return true
}

func isAlphanumeric(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}
