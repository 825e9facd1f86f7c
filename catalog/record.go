package catalog

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Choice has what a record leaves open. Each field may be empty.
type Choice struct {
	// Asset is the name of the primary input: the name of a STAC asset, or the identifier,
	// title or @id of a DCAT distribution. It may be empty if the record has only one.
	Asset string

	// Version is the semantic version. If it is empty, the record's own is taken: version
	// of the STAC version extension, or dcat:version or owl:versionInfo. Items of most
	// archives have none: then the version is that of the pipeline.
	Version string

	// Base is the absolute URI that relative addresses of the record refer to. If it is
	// empty, the record's self link is taken.
	Base string

	// QueryParameters are those of [sqsfifo.Dataset].
	QueryParameters []string
}

// RecordError reports that a record gives no dataset. Member is the record's member, such
// as assets.red.href.
type RecordError struct{ Member, Problem string }

// Error returns the member and the problem.
func (e *RecordError) Error() string { return "catalog: " + e.Member + ": " + e.Problem }

func wrong(member, format string, args ...any) error {
	return &RecordError{member, fmt.Sprintf(format, args...)}
}

// Read returns the dataset of a record in JSON: a STAC Item or Collection, or a DCAT dataset
// in JSON-LD.
//
//   - ID is the record's id; for DCAT dcterms:identifier, or else the @id.
//   - Version, and the asset whose address is SourceURI, see [Choice].
//   - ArtifactChecksum is the asset's file:checksum or checksum:multihash (SHA-1, SHA-256 or
//     SHA-512), or the distribution's spdx:checksum, as in "sha256:ab12…". It is empty if the
//     asset has none.
//
// DCAT members are found by their local names, with any prefix or as full IRIs, in the
// dataset and in objects within it. A "@graph" may have one dataset.
//
// The result has a valid key. The error is a [*RecordError].
func Read(record []byte, c Choice) (sqsfifo.Dataset, error) {
	var r map[string]any
	if err := json.Unmarshal(bytes.TrimSpace(record), &r); err != nil || r == nil {
		return sqsfifo.Dataset{}, wrong("record", "not a JSON object; give one STAC Item or Collection, or one DCAT dataset")
	}
	read := readDCAT
	switch text(r["type"]) {
	case "Feature", "Collection":
		read = readSTAC
	case "Catalog":
		return sqsfifo.Dataset{}, wrong("type", "a Catalog is no dataset; give an Item or a Collection of it")
	}
	d, err := read(r, c)
	if err != nil {
		return sqsfifo.Dataset{}, err
	}
	d.QueryParameters = slices.Clone(c.QueryParameters)
	if _, err := d.Normalize(); err != nil {
		var invalid *sqsfifo.InvalidError
		if errors.As(err, &invalid) {
			return sqsfifo.Dataset{}, wrong(map[string]string{"dataset_id": "id", "version": "version", "source_uri": "href"}[invalid.Field], "%s", invalid.Rule)
		}
		return sqsfifo.Dataset{}, err
	}
	return d, nil
}

func readSTAC(r map[string]any, c Choice) (d sqsfifo.Dataset, err error) {
	properties, _ := r["properties"].(map[string]any)
	d.ID = text(r["id"])
	if d.ID == "" {
		return d, wrong("id", "missing or not a string; it is the dataset_id")
	}
	if d.Version, err = version(c, "properties.version", properties["version"], r["version"]); err != nil {
		return d, err
	}
	assets, _ := r["assets"].(map[string]any)
	name, err := one("assets", slices.Sorted(maps.Keys(assets)), c.Asset)
	if err != nil {
		return d, err
	}
	at := "assets." + name
	asset, _ := assets[name].(map[string]any)
	self := ""
	for _, l := range list(r["links"]) {
		if link, _ := l.(map[string]any); text(link["rel"]) == "self" {
			self = text(link["href"])
		}
	}
	if d.SourceURI, err = address(at+".href", text(asset["href"]), c.Base, self); err != nil {
		return d, err
	}
	for _, member := range []string{"file:checksum", "checksum:multihash"} {
		if sum, ok := asset[member]; ok && d.ArtifactChecksum == "" {
			if d.ArtifactChecksum, err = multihash(at+"."+member, text(sum)); err != nil {
				return d, err
			}
		}
	}
	return d, nil
}

func version(c Choice, member string, found ...any) (string, error) {
	if c.Version != "" {
		return c.Version, nil
	}
	for _, v := range found {
		if s := text(v); s != "" {
			return s, nil
		}
	}
	return "", wrong(member, "missing; give the version of the pipeline or of the release as Choice.Version (in the command: --version)")
}

// one returns the wanted name, or the only one.
func one(member string, names []string, want string) (string, error) {
	switch {
	case len(names) == 0:
		return "", wrong(member, "missing or empty; the record names no file")
	case want == "" && len(names) == 1:
		return names[0], nil
	case want == "":
		return "", wrong(member, "there are %d; name one as Choice.Asset (in the command: --asset): %s", len(names), strings.Join(names, ", "))
	case !slices.Contains(names, want):
		return "", wrong(member, "there is no %q; the names are %s", want, strings.Join(names, ", "))
	}
	return want, nil
}

// address returns href as an absolute URI.
func address(member, href string, bases ...string) (string, error) {
	if href == "" {
		return "", wrong(member, "missing or not a string")
	}
	u, err := url.Parse(href)
	if err != nil {
		return "", wrong(member, "not a URI")
	}
	if u.IsAbs() {
		return href, nil
	}
	for _, base := range bases {
		if b, err := url.Parse(base); err == nil && b.IsAbs() {
			return b.ResolveReference(u).String(), nil
		}
	}
	return "", wrong(member, "relative, and the record has no absolute self link; give the address of the record as Choice.Base (in the command: --base)")
}

// multihash returns a self-describing hash in hexadecimal digits as "name:digits".
func multihash(member, digits string) (string, error) {
	raw, err := hex.DecodeString(digits)
	if err != nil || len(raw) < 2 {
		return "", wrong(member, "not a multihash in hexadecimal digits")
	}
	name := map[byte]string{0x11: "sha1", 0x12: "sha256", 0x13: "sha512"}[raw[0]]
	if name == "" {
		return "", wrong(member, "a multihash of the function 0x%02x; SHA-1, SHA-256 and SHA-512 are known", raw[0])
	}
	if size := map[string]int{"sha1": 20, "sha256": 32, "sha512": 64}[name]; len(raw) != 2+size || int(raw[1]) != size {
		return "", wrong(member, "a multihash of %s with %d bytes, want %d", name, len(raw)-2, size)
	}
	return name + ":" + hex.EncodeToString(raw[2:]), nil
}

func list(v any) []any {
	if l, ok := v.([]any); ok {
		return l
	}
	if v == nil {
		return nil
	}
	return []any{v}
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
