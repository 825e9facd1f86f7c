package tools

import (
	"os/exec"
	"strings"
	"testing"
)

// The script behind "make test" exits with the status of the tests, prints the output of
// a failed package and the skips of the others, and ends with the slowest packages.
func TestReport(t *testing.T) {
	for name, c := range map[string]struct {
		in, out string
		fails   bool
	}{
		"short": {
			in: "--- FAIL: TestA (0.00s)\n    a_test.go:5: the reason\nFAIL\nFAIL\tm/a\t0.20s\nok  \tm/b\t1.50s\nok  \tm/c\t(cached)\n# m/d [m/d.test]\nd.go:3: undefined: x\nFAIL\tm/d [build failed]\n?   \tm/e\t[no test files]\nFAIL\nexit 1\n",
			out: "--- FAIL: TestA (0.00s)\n    a_test.go:5: the reason\nFAIL\nFAIL\tm/a\t0.20s\nok  \tm/b\t1.50s\nok  \tm/c\t(cached)\n# m/d [m/d.test]\nd.go:3: undefined: x\nFAIL\tm/d [build failed]\nFAIL\n\n" +
				"the ten slowest packages, in seconds:\n    1.50 m/b\n    0.20 m/a\n",
			fails: true,
		},
		"verbose": {
			in:  "=== RUN   TestA\n    a_test.go:4: a log\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n    a_test.go:9: no server\n--- SKIP: TestB (0.00s)\nPASS\nok  \tm/a\t0.20s\nexit 0\n",
			out: "--- SKIP: TestB (0.00s)\n    a_test.go:9: no server\nok  \tm/a\t0.20s\n\nthe ten slowest packages, in seconds:\n    0.20 m/a\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			awk := exec.CommandContext(t.Context(), "awk", "-f", "report.awk")
			awk.Stdin = strings.NewReader(c.in)
			out, err := awk.Output()
			if string(out) != c.out {
				t.Errorf("got:\n%s\nwant:\n%s", out, c.out)
			}
			if (err != nil) != c.fails {
				t.Errorf("got error %v, want an error: %v", err, c.fails)
			}
		})
	}
}
