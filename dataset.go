package sqsfifo

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/sourceuri"
)

// keyPrefix starts every idempotency key (KFM key specification v10.3.1, "Key shape").
const keyPrefix = "sha256:"

// Dataset identifies one version of a dataset from one source. ID, Version and SourceURI
// are the components of the KFM idempotency key (key specification v10.3.1).
type Dataset struct {
	// ID is the dataset's identifier in its STAC or DCAT record. It is case-sensitive.
	ID string `json:"dataset_id"`

	// Version is a semantic version. v10.3.1 and 10.3.1 mean the same version.
	Version string `json:"version"`

	// SourceURI is the absolute URI of the primary input. Credentials in the URI (user
	// information, signatures) are refused.
	SourceURI string `json:"source_uri"`

	// QueryParameters are the names of the query parameters that distinguish sources. Any
	// other parameter in SourceURI is refused: with a session ID, for example, one source
	// would have many keys.
	QueryParameters []string `json:"query_parameters,omitempty"`

	// ArtifactChecksum and CARELabel are for telemetry only.
	ArtifactChecksum string `json:"artifact_checksum,omitempty"`
	CARELabel        string `json:"care_label,omitempty"`
}

// Catalog is a data catalogue, see Config.Catalog. Package catalog reads one.
type Catalog interface {
	// Knows reports whether the catalogue has a record with this identifier. The producer
	// calls Knows for each event with a dataset, concurrently: answer from memory.
	Knows(datasetID string) bool
}

func (d *Dataset) clone() *Dataset {
	if d == nil {
		return nil
	}
	c := *d
	c.QueryParameters = slices.Clone(d.QueryParameters)
	return &c
}

// IdempotencyKey returns the KFM idempotency key of the dataset (key specification
// v10.3.1):
//
//	sha256:hex(SHA-256(dataset_id | version | source_uri))
//
// The key contains the normal form of each component:
//
//   - White space around a component is removed. A "|" in a component is refused, because
//     two datasets could then have one key.
//   - The version is a semantic version with a leading v.
//   - In the URI, scheme and host are lower case. A default port and the fragment are
//     removed. Dot segments are resolved, percent-encoding is normalised (RFC 3986 section
//     6.2.2), and declared query parameters are sorted.
//
// IdempotencyKey is a pure function and does not change d. The error is an [*InvalidError]
// with the name of the component.
func (d Dataset) IdempotencyKey() (string, error) {
	d, err := d.Normalize()
	if err != nil {
		return "", err
	}
	return d.keyOfNormal(), nil
}

// keyOfNormal returns the idempotency key of d. The caller has normalised d with Normalize.
func (d *Dataset) keyOfNormal() string {
	return keyPrefix + hexOf(sha256.Sum256([]byte(d.ID+"|"+d.Version+"|"+d.SourceURI)))
}

// Normalize returns a copy of d with ID, Version and SourceURI in their normal form. A
// dataset and its normal form have the same key. The errors are those of
// [Dataset.IdempotencyKey].
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
		return Dataset{}, invalid("source_uri", rule)
	}
	d.ID, d.Version, d.SourceURI = id, version, uri
	return d, nil
}

// recorded returns the dataset's ID, version and idempotency key for records and spans.
// ID and version are normalised. For an invalid dataset they are unchanged, and the key
// is empty.
func (d *Dataset) recorded() (id, version, key string) {
	normal, err := d.Normalize()
	if err != nil {
		return d.ID, d.Version, ""
	}
	return normal.ID, normal.Version, normal.keyOfNormal()
}

// ErrKeyMismatch means that an idempotency key belongs to another dataset, version or
// source. The error of [Dataset.Verify] wraps it.
var ErrKeyMismatch = errors.New("idempotency key does not belong to this dataset")

// Verify compares the parameter `key` with the dataset's idempotency key. If they differ, the
// error wraps [ErrKeyMismatch]. If `key` or the dataset is invalid, the error is an
// [*InvalidError].
func (d Dataset) Verify(key string) error {
	if _, err := ParseIdempotencyKey(key); err != nil {
		return err
	}
	own, err := d.IdempotencyKey()
	if err != nil {
		return err
	}
	if key != own { // a comparison of the texts suffices, because ParseIdempotencyKey accepts only lower case
		return fmt.Errorf("sqsfifo: %w: got %s, recomputed %s", ErrKeyMismatch, key, own)
	}
	return nil
}

// ParseIdempotencyKey returns the digest of a stored key: "sha256:" and 64 lower-case
// hexadecimal digits. Any other spelling is an [*InvalidError], because a lookup with
// another spelling would miss the key's record.
func ParseIdempotencyKey(key string) ([sha256.Size]byte, error) {
	var sum [sha256.Size]byte
	digits, ok := strings.CutPrefix(key, keyPrefix)
	if !ok {
		return sum, invalid("key", `does not start with "sha256:"; use what IdempotencyKey returned`)
	}
	if len(digits) != hex.EncodedLen(len(sum)) {
		return sum, invalid("key", fmt.Sprintf("%d digits after %q, want 64; a SHA-256 has 64", len(digits), keyPrefix))
	}
	if strings.ToLower(digits) != digits {
		return sum, invalid("key", "upper-case digits; keys are stored in lower case")
	}
	if _, err := hex.Decode(sum[:], []byte(digits)); err != nil {
		return sum, invalid("key", "not hexadecimal; use what IdempotencyKey returned")
	}
	return sum, nil
}

func normalizeDatasetID(id string) (string, error) {
	const field = "dataset_id"
	id = strings.TrimSpace(id)
	if id == "" {
		return "", invalid(field, "empty; use the identifier of the STAC or DCAT record")
	}
	if rule := componentFault(id); rule != "" {
		return "", invalid(field, rule)
	}
	return id, nil
}

// componentFault returns "" if s may be a component of the idempotency key, otherwise an
// error text.
func componentFault(s string) string {
	if strings.Contains(s, "|") {
		return `holds "|", which joins the components; two different datasets could share one key, encode or rename it`
	}
	return textFault(s)
}

// semanticVersion is a semantic version without a leading v (semver.org 2.0.0).
var semanticVersion = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}` +
		`(-` + prerelease + `(\.` + prerelease + `)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)
})

// prerelease is an identifier of a prerelease: a number without a leading zero, or a text.
const prerelease = `(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)`

func normalizeVersion(version string) (string, error) {
	v := strings.TrimSpace(version)
	if rule := componentFault(v); rule != "" {
		return "", invalid("version", rule)
	}
	if strings.HasPrefix(v, "v") || strings.HasPrefix(v, "V") {
		v = v[1:]
	}
	if !semanticVersion().MatchString(v) {
		return "", invalid("version", "not a semantic version; write it as v10.3.1")
	}
	return "v" + v, nil
}
