package catalog_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/catalog"
)

const (
	sum256 = "1220" + "ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12ab12"
	item   = `{"type":"Feature","stac_version":"1.0.0","id":"LT05_L2SP_010067_19860424","properties":{"datetime":"1986-04-24T14:40:06Z"},
		"links":[{"rel":"root","href":"../catalog.json"},{"rel":"self","href":"https://Host.example/stac/items/LT05.json"}],
		"assets":{"red":{"href":"../data/LT05_SR_B3.TIF","file:checksum":"` + sum256 + `"},"thumbnail":{"href":"s3://bucket/thumb.jpeg"}}}`
	collection = `{"type":"Collection","stac_version":"1.0.0","id":"landsat-c2-l2","version":"2.0.1","links":[],"assets":{"table":{"href":"https://host.example/l2.parquet"}}}`
	dcat       = `{"@context":{"dcat":"http://www.w3.org/ns/dcat#","dct":"http://purl.org/dc/terms/"},"@id":"https://host.example/datasets/storms","@type":"dcat:Dataset",
		"dct:identifier":"noaa_storm_events_1950_2025","dcat:version":"v10.3.1",
		"dcat:distribution":{"@type":"dcat:Distribution","dct:title":"csv","dcat:downloadURL":{"@id":"https://www.ncei.noaa.gov/storm-events/file_1950_2025.csv"},
		"spdx:checksum":{"spdx:algorithm":{"@id":"spdx:checksumAlgorithm_sha256"},"spdx:checksumValue":"AB12"}}}`
	graph = `{"@graph":[{"@id":"_:d","@type":["http://www.w3.org/ns/dcat#Distribution"],"http://www.w3.org/ns/dcat#accessURL":[{"@id":"https://www.ncei.noaa.gov/storm-events/file_1950_2025.csv"}]},
		{"@id":"noaa_storm_events_1950_2025","@type":["http://www.w3.org/ns/dcat#Dataset"],"http://www.w3.org/2002/07/owl#versionInfo":[{"@value":"10.3.1"}],"http://www.w3.org/ns/dcat#distribution":[{"@id":"_:d"}]}]}`
)

// The key of a record is that of its components by hand.
func TestRead(t *testing.T) {
	storms := sqsfifo.Dataset{ID: "noaa_storm_events_1950_2025", Version: "v10.3.1", SourceURI: "https://www.ncei.noaa.gov/storm-events/file_1950_2025.csv"}
	withSum := storms
	withSum.ArtifactChecksum = "sha256:ab12"
	plain := storms
	plain.Version = "10.3.1"
	for name, tc := range map[string]struct {
		record string
		choice catalog.Choice
		want   sqsfifo.Dataset
	}{
		"an Item with a self link": {item, catalog.Choice{Asset: "red", Version: "1.2.3"}, sqsfifo.Dataset{
			ID: "LT05_L2SP_010067_19860424", Version: "1.2.3", SourceURI: "https://Host.example/stac/data/LT05_SR_B3.TIF", ArtifactChecksum: "sha256:" + sum256[4:],
		}},
		"another base": {item, catalog.Choice{Asset: "red", Version: "1.2.3", Base: "s3://bucket/a/b/item.json"}, sqsfifo.Dataset{
			ID: "LT05_L2SP_010067_19860424", Version: "1.2.3", SourceURI: "s3://bucket/a/data/LT05_SR_B3.TIF", ArtifactChecksum: "sha256:" + sum256[4:],
		}},
		"an absolute asset": {item, catalog.Choice{Asset: "thumbnail", Version: "1.2.3"}, sqsfifo.Dataset{
			ID: "LT05_L2SP_010067_19860424", Version: "1.2.3", SourceURI: "s3://bucket/thumb.jpeg",
		}},
		"the version extension": {strings.Replace(item, `"datetime"`, `"version":"4.0.0","datetime"`, 1), catalog.Choice{Asset: "thumbnail"}, sqsfifo.Dataset{
			ID: "LT05_L2SP_010067_19860424", Version: "4.0.0", SourceURI: "s3://bucket/thumb.jpeg",
		}},
		"a Collection with one asset":  {collection, catalog.Choice{}, sqsfifo.Dataset{ID: "landsat-c2-l2", Version: "2.0.1", SourceURI: "https://host.example/l2.parquet"}},
		"a DCAT dataset":               {dcat, catalog.Choice{Asset: "csv"}, withSum},
		"its distribution by position": {dcat, catalog.Choice{Asset: "#1"}, withSum},
		"a graph with full IRIs":       {graph, catalog.Choice{}, plain},
	} {
		got, err := catalog.Read([]byte(tc.record), tc.choice)
		require.NoError(t, err, name)
		assert.Equal(t, tc.want, got, name)
		normal, err := got.Normalize()
		require.NoError(t, err, name)
		sum := sha256.Sum256([]byte(normal.ID + "|" + normal.Version + "|" + normal.SourceURI))
		key, err := got.IdempotencyKey()
		require.NoError(t, err, name)
		assert.Equal(t, "sha256:"+hex.EncodeToString(sum[:]), key, name)
	}
}

// Each error names the member of the record.
func TestReadRefuses(t *testing.T) {
	change := func(old, now string) string {
		require.Contains(t, item, old)
		return strings.Replace(item, old, now, 1)
	}
	red := catalog.Choice{Asset: "red", Version: "1.2.3"}
	for name, tc := range map[string]struct {
		record string
		choice catalog.Choice
		member string
	}{
		"not JSON":                {"{", red, "record"},
		"an array":                {"[" + item + "]", red, "record"},
		"another type":            {change(`"Feature"`, `"FeatureCollection"`), red, "type"},
		"a catalogue":             {change(`"Feature"`, `"Catalog"`), red, "type"},
		"no id":                   {change(`"id"`, `"name"`), red, "id"},
		"an id with a bar":        {change(`LT05_L2SP`, `LT05|L2SP`), red, "id"},
		"no version":              {item, catalog.Choice{Asset: "red"}, "properties.version"},
		"a version in two parts":  {item, catalog.Choice{Asset: "red", Version: "02"}, "version"},
		"no assets":               {change(`"assets"`, `"files"`), red, "assets"},
		"which asset":             {item, catalog.Choice{Version: "1.2.3"}, "assets"},
		"no such asset":           {item, catalog.Choice{Asset: "blue", Version: "1.2.3"}, "assets"},
		"no href":                 {change(`"href":"../data`, `"url":"../data`), red, "assets.red.href"},
		"relative, no self link":  {change(`"rel":"self"`, `"rel":"via"`), red, "assets.red.href"},
		"a signed address":        {change(`../data/LT05_SR_B3.TIF`, `https://h.example/a?sig=x`), red, "href"},
		"a checksum of no digits": {change(sum256, "sha256:ab"), red, "assets.red.file:checksum"},
		"a short checksum":        {change(sum256, "1220ab"), red, "assets.red.file:checksum"},
		"an unknown hash":         {change(sum256, "ff01ab"), red, "assets.red.file:checksum"},
		"two datasets":            {`{"@graph":[` + dcat + `,` + dcat + `]}`, catalog.Choice{}, "@graph"},
		"no distribution":         {strings.Replace(dcat, "dcat:distribution", "dcat:record", 1), catalog.Choice{}, "dcat:distribution"},
		"half a checksum":         {strings.Replace(dcat, "spdx:checksumValue", "x", 1), catalog.Choice{}, "spdx:checksum"},
	} {
		_, err := catalog.Read([]byte(tc.record), tc.choice)
		var wrong *catalog.RecordError
		require.ErrorAs(t, err, &wrong, name)
		assert.Equal(t, tc.member, wrong.Member, "%s: %v", name, err)
	}
}

// A folder of real Items, for example those of stactools-packages/landsat.
func TestRealItems(t *testing.T) {
	folder := os.Getenv("SQSFIFO_STAC_ITEMS")
	if folder == "" {
		t.Skip("SQSFIFO_STAC_ITEMS names no folder with STAC Items")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var r struct {
			ID     string
			Assets map[string]struct{ Href string }
		}
		require.NoError(t, json.Unmarshal(raw, &r))
		for name := range r.Assets {
			if strings.Contains(r.Assets[name].Href, "?") {
				continue
			}
			d, err := catalog.Read(raw, catalog.Choice{Asset: name, Version: "2.0.0", Base: "https://example.com/landsat/a/b/c/item.json"})
			require.NoError(t, err, "%s %s", file, name)
			uri := strings.Replace(r.Assets[name].Href, "../../..", "https://example.com/landsat", 1)
			sum := sha256.Sum256([]byte(r.ID + "|v2.0.0|" + uri))
			assert.NoError(t, d.Verify("sha256:"+hex.EncodeToString(sum[:])), "%s %s", file, name)
		}
	}
	t.Logf("%d items", len(files))
}

func TestStatic(t *testing.T) {
	files := fstest.MapFS{
		"catalog.json":       {Data: []byte(`{"type":"Catalog","id":"root","links":[{"rel":"child","href":"./l2/collection.json"},{"rel":"item","href":"./single.json"},{"rel":"root","href":"https://h/catalog.json"}]}`)},
		"l2/collection.json": {Data: []byte(`{"type":"Collection","id":"landsat-c2-l2","links":[{"rel":"item","href":"items/a.json"},{"rel":"child","href":"../catalog.json"}]}`)},
		"l2/items/a.json":    {Data: []byte(`{"type":"Feature","id":"LT05_A","links":[]}`)},
		"single.json":        {Data: []byte(`{"type":"Feature","id":"single"}`)},
		"unlinked.json":      {Data: []byte(`{"type":"Feature","id":"unlinked"}`)},
	}
	s, err := catalog.Open(files)
	require.NoError(t, err)
	for id, known := range map[string]bool{"landsat-c2-l2": true, "LT05_A": true, "single": true, "root": false, "unlinked": false, "LT05_a": false} {
		assert.Equal(t, known, s.Knows(id), id)
	}
	for text, says := range map[string]string{
		`{"id":"r","links":[{"rel":"child","href":"https://h/c.json"}]}`: "catalog.json: the link",
		`{"id":"r","links":[{"rel":"child","href":"../c.json"}]}`:        "../c.json",
		`{"id":"r","links":[{"rel":"item","href":"none.json"}]}`:         "none.json",
		`{"links":[]}`: "catalog.json: id is missing",
		`[]`:           "catalog.json: ",
	} {
		_, err := catalog.Open(fstest.MapFS{"catalog.json": {Data: []byte(text)}})
		require.ErrorContains(t, err, says)
	}
	_, err = catalog.Open(fstest.MapFS{})
	require.Error(t, err)
	assert.False(t, errors.Is(err, os.ErrPermission))
}

// A Static is the Config.Catalog of a producer.
var _ sqsfifo.Catalog = (*catalog.Static)(nil)
