package guide_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// figure is a number that a document repeats from a table in docs/benchmarks.md.
type figure struct {
	text    string   // sentence or part of it in the document; %s stands for the number
	heading string   // heading of the table's section
	row     []string // the number is in the first row with all these texts
	// The number is in this column of the row, counted from 1. 0 means the first percentage
	// in the row, in any column.
	column int
}

var figures = map[string][]figure{
	"../../README.md": {}, // the README has no measured number
	"speed.md": {
		{"| 10,000 message groups | %s events/s |", "Sending", []string{"latency 5 ms, 10,000 groups", "the SDK's client"}, 3},
		{"44,815 events/s | %s events/s |", "Sending", []string{"latency 5 ms, 10,000 groups", "`NewClient`"}, 3},
		{"49,695 events/s | %s events/s | |", "Sending", []string{"latency 5 ms, 10,000 groups", "`OrderStrict`"}, 3},
		{"| 100 message groups | %s events/s |", "Sending", []string{"latency 5 ms, 100 groups", "the SDK's client"}, 3},
		{"38,834 events/s | %s events/s |", "Sending", []string{"latency 5 ms, 100 groups", "`NewClient`"}, 3},
		{"44,837 events/s | %s events/s |", "Sending", []string{"latency 5 ms, 100 groups", "`OrderStrict`"}, 3},
		{"14,245 events/s | %s events/s |", "Sending", []string{"latency 5 ms, 100 groups", "`OrderRuns`"}, 3},
		{"calls a second it used %s of the quota", "Sending", []string{"300 calls a second"}, 0},
		{"Building one event costs %s (", "Producer", []string{"build a message of 370 bytes"}, 2},
		{"and hash), %s of the time", "Producer", []string{"build a message of 370 bytes"}, 4},
		{"with SQLite reached %s of its rate", "Idempotency stores", []string{"SQS takes 5 ms", "SQLite"}, 5},
		{"with PostgreSQL %s.", "Idempotency stores", []string{"SQS takes 5 ms", "PostgreSQL"}, 5},
	},
}

// number matches a measured number: a rate, a time, a share or a ratio.
var number = regexp.MustCompile(`[0-9][0-9,.]* (?:events/s|us|ns|ms|%)|\b0\.[0-9]+\b`)

// The README and speed.md contain each number listed in the variable figures, with its
// value in docs/benchmarks.md. Outside of code blocks, they contain no other measured numbers.
func TestFiguresAreThoseOfTheBenchmarks(t *testing.T) {
	data, err := os.ReadFile("../benchmarks.md")
	require.NoError(t, err)
	for file, list := range figures {
		document, err := os.ReadFile(file)
		require.NoError(t, err)
		text := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(string(document), "")
		// "5 ms" is the latency chosen for the measurements, not a result.
		permitted := []string{"5 ms"}
		for _, f := range list {
			value := cell(t, string(data), f)
			assert.Contains(t, text, strings.ReplaceAll(f.text, "%s", value), "%s: benchmarks.md has %s", file, value)
			permitted = append(permitted, value, value+" events/s")
		}
		for _, m := range number.FindAllString(text, -1) {
			assert.Contains(t, permitted, m, "%s: no benchmark holds this number", file)
		}
	}
}

// cell returns the value of f from its table in docs/benchmarks.md.
func cell(t *testing.T, benchmarks string, f figure) string {
	t.Helper()
	_, section, ok := strings.Cut(benchmarks, "\n## "+f.heading+"\n")
	require.True(t, ok, "benchmarks.md has no heading %s", f.heading)
	section, _, _ = strings.Cut(section, "\n## ")
	work := ""
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) > 2 && strings.TrimSpace(cells[1]) != "" {
			work = cells[1] // an empty first cell repeats the cell above
		}
		for _, words := range f.row {
			if !strings.Contains(work+line, words) {
				line = ""
				break
			}
		}
		switch {
		case line == "":
		case f.column == 0:
			return regexp.MustCompile(`[0-9.]+ %`).FindString(line)
		case f.column < len(cells):
			value, _, _ := strings.Cut(strings.TrimSpace(cells[f.column]), ",")
			if strings.Contains(f.text, "events/s") {
				value = strings.TrimSpace(cells[f.column])
			}
			value, _, _ = strings.Cut(value, " (")
			return value
		}
	}
	require.Fail(t, "no row", "benchmarks.md, %s: %v", f.heading, f.row)
	return ""
}
