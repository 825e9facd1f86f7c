package vet_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
)

// The findings about a package do not depend on the earlier results in the go command's
// cache. The test checks "go vet -vettool" and Run.
func TestTheSameAnswerFromEveryCache(t *testing.T) {
	runsGo(t)
	self, err := os.Executable()
	require.NoError(t, err)
	viaGoVet := func(flags []string, pattern string) []string {
		args := append([]string{"vet", "-vettool=" + self}, flags...)
		cmd := exec.CommandContext(t.Context(), "go", append(args, pattern)...)
		cmd.Dir = module
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil {
			require.ErrorAs(t, err, &exit, string(out))
		}
		var lines []string
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, ": SF") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		slices.Sort(lines)
		return slices.Compact(lines) // a package and its test variant report the same findings
	}
	viaRun := func(flags []string, pattern string) []string {
		report, err := vet.Run(t.Context(), vet.Options{Dir: module, Patterns: []string{pattern}, Flags: flags, NoCompliance: true})
		require.NoError(t, err)
		return asLines(report.Findings)
	}
	orders := [][]string{
		{"./..."}, // the cache has no results for these flags yet
		{"./raw", "./..."},
		// raw/wrapped imports raw, so the first run analyzes raw only as a dependency.
		{"./raw/wrapped", "./raw", "./..."},
		{"./...", "./raw/wrapped", "./..."},
	}
	for name, run := range map[string]func([]string, string) []string{"go vet": viaGoVet, "sqsfifo vet": viaRun} {
		var want []string
		byPattern := map[string][]string{}
		for i, order := range orders {
			// Each round has another value of the flag, so the cache has no results for it.
			flags := []string{"-sqsfifo", fmt.Sprintf("-sqsfifo.nondet=example.com/never.F%d%d", time.Now().UnixNano(), i)}
			for _, pattern := range order {
				got := run(flags, pattern)
				if was, ok := byPattern[pattern]; ok {
					assert.Equal(t, was, got, "%s of %s in the order %s", name, pattern, order)
				}
				byPattern[pattern] = got
			}
			if i == 0 {
				want = byPattern["./..."]
				require.NotEmpty(t, want)
			}
		}
	}
}

// BenchmarkWarm compares Run with "go vet -vettool" on the root module, when the go command's
// cache has all results.
func BenchmarkWarm(b *testing.B) {
	o := vet.Options{Dir: "../..", Patterns: []string{"./..."}, Flags: []string{"-sqsfifo"}, NoCompliance: true}
	if testing.Short() {
		o.Dir = module
	}
	for name, run := range map[string]func() error{
		"go vet": func() error {
			cmd := exec.CommandContext(b.Context(), "go", "vet", "-json", "-vettool="+os.Args[0], "-sqsfifo", "./...") // #nosec G204 -- this test
			cmd.Dir = o.Dir
			return cmd.Run()
		},
		"sqsfifo vet": func() error {
			_, err := vet.Run(b.Context(), o)
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			require.NoError(b, run()) // fills the cache
			for b.Loop() {
				require.NoError(b, run())
			}
		})
	}
}
