package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDemo(t *testing.T) {
	checkDemo(t, 7)
}

// The STAC items as the catalogues publish them, where they are at hand: 20
// products of scenes from 1972 to 2022, some of them two products of one scene.
func TestDemoOverPublishedItems(t *testing.T) {
	const folder = "../../../shared/data/landsat"
	if _, err := os.Stat(folder); err != nil {
		t.Skip("no folder of STAC items:", err)
	}
	checkDemo(t, 20, folder)
}

func checkDemo(t *testing.T, scenes int, args ...string) {
	t.Helper()
	var out strings.Builder
	require.NoError(t, run(t.Context(), args, &out))
	text := out.String()

	assert.Equal(t, 2*scenes, strings.Count(text, "\n  new "), text)
	assert.Equal(t, scenes, strings.Count(text, "\n  suppressed "))
	hashes := map[string]int{}
	for _, h := range regexp.MustCompile(`body sha256 [0-9a-f]{64}\n`).FindAllString(text, -1) {
		hashes[h]++
	}
	assert.Len(t, hashes, scenes, "no two scenes share a body")
	for h, n := range hashes {
		assert.Equal(t, 3, n, "each replay has the same body: %s", h)
	}
	metrics := strings.Join(strings.Fields(text[strings.Index(text, "\nmetrics\n"):]), " ")
	assert.Contains(t, metrics, "sqs_fifo.dedupe.collisions_detected 1 {collision}")
	assert.Contains(t, metrics, "sqs_fifo.producer.violations 1 {violation}")
	assert.Contains(t, metrics, fmt.Sprintf("sqs_fifo.body_hash.length_bytes %d bodies,", 3*scenes))
	assert.Contains(t, metrics, fmt.Sprintf("sqs_fifo.dedupe_window_hits %d {hit}", scenes))
}

func TestBadInput(t *testing.T) {
	var out strings.Builder
	require.ErrorContains(t, run(t.Context(), []string{t.TempDir()}, &out), "no STAC items")

	folder := t.TempDir()
	require.NoError(t, os.WriteFile(folder+"/item.json", []byte(`{"id":"x"}`), 0o600))
	require.ErrorContains(t, run(t.Context(), []string{folder}, &out), "landsat:wrs_path")

	require.NoError(t, os.WriteFile(folder+"/item.json", []byte(`{"id":"x","properties":{"landsat:wrs_path":"1","landsat:wrs_row":"2","datetime":"yesterday"}}`), 0o600))
	require.ErrorContains(t, run(t.Context(), []string{folder}, &out), "datetime")

	require.ErrorContains(t, run(t.Context(), []string{"-queue-url", "https://sqs.us-east-1.amazonaws.com/1/standard"}, &out), ".fifo")
}
