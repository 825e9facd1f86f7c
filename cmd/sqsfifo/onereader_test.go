package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/replay"
)

// The commands simulate, lint, send and replay report the same error for the same invalid
// line.
func TestOneReader(t *testing.T) {
	const begins = `{"at":"2025-12-04T12:00:00Z","group":"g","dedupe_key":"k","event_id":"0197a0c2-7f00-7000-8000-000000000000",`
	for line, says := range map[string]string{
		begins + `"body":"a","body":"b"}`:                                   "duplicate member name",
		begins + `"body":"a","delay":1}`:                                    `unknown member "delay"`,
		begins + `"body":"a","Group":"h"}`:                                  `unknown member "Group"`,
		begins + `"body":"a","attributes":{"k":"1","k":"2"}}`:               "duplicate member name",
		begins + `"body":"a","attributes":{"k":1}}`:                         "attributes: k: not a string",
		begins + `"body":[1]}`:                                              "body: neither a string nor an object",
		begins + `"body":"\ud800"}`:                                         "surrogate",
		begins + `"body":{"n":9007199254740993}}`:                           "encode it as a string",
		begins + `"body":"a"}{}`:                                            "trailing data",
		strings.Replace(begins, "000000000000\"", "0\"", 1) + `"body":"a"}`: "event_id: ",
	} {
		_, simulate, _ := shell(t, line, "simulate")
		_, lint, _ := shell(t, line, "lint")
		_, send, _ := shell(t, line, "send", "--input", "message", "--dry-run")
		for command, stderr := range map[string]string{"simulate": simulate, "lint": lint, "send": send} {
			assert.Contains(t, stderr, "standard input:1: ", "%s: %s", command, line)
			assert.Contains(t, stderr, says, "%s: %s", command, line)
		}
		for it, err := range replay.NewJSONLines("x", strings.NewReader(line), int64(len(line))).Scan(t.Context()) {
			require.ErrorContains(t, errors.Join(err, it.Err), says, line)
		}
	}
}
