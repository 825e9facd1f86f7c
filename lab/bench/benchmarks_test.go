// Package bench_test checks the commands of docs/benchmarks.md.
package bench_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// root is the folder of the repository.
const root = "../.."

// shortest has the shortest form of each command in docs/benchmarks.md: variables such as
// N=5, for make and for the environment, and then arguments to append to the command. An
// appended flag replaces the same flag of the command.
var shortest = map[string]string{
	"make bench-canonical":                  "-rounds 1 -slice 100us -only event",
	"make bench-window":                     "-n 10000 -rounds 1 -only window,map",
	"make bench-window WINDOW_IDS=21000000": "-n 10000 -rounds 1 -only window,otter",
	"make bench-send":                       "-n 200 -rounds 1 -quota 1s",
	"cd lab && go run ./bench/send -only faults,random -n 30000 -rounds 3": "-n 200 -rounds 1",
	"cd lab && go run ./bench/send -only send":                             "-n 200 -rounds 1",
	"cd lab && go run ./bench/store -producer -rounds 2 -events 8000":      "-rounds 1 -events 100",
	"go test -run '^$' -bench 'Build|Send' -benchmem -count 3 .":           "-benchtime 1x -count 1",
	"make bench-memory":                             "-run ^$", // TestMemory itself runs in its package
	"cd lab && go run ./bench/consume":              "-n 100 -rounds 1",
	"make bench-simulate":                           "SIMULATE_LINES=4000",
	"make bench-store":                              "-time 10ms -rounds 1 -events 100",
	"cd lab && go run ./bench/store -keys 10000000": "-keys 20000",
	"make bench-command":                            "SQSFIFO_SEND_EVENTS=200",
	"make bench-vet":                                "-short -benchtime 1x -count 1",
}

// docs/benchmarks.md is short, and each area has commands, a date and one table. The page
// has exactly the commands of the variable shortest. Each command names things that exist:
// make targets, packages, tests, benchmarks and flags.
func TestBenchmarksPage(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs/benchmarks.md"))
	require.NoError(t, err)
	page := string(data)
	assert.LessOrEqual(t, len(page), 12_000, "bytes of docs/benchmarks.md")
	command := regexp.MustCompile("`((?:make|go|cd) [^`]+)`")
	_, areas, _ := strings.Cut(page, "\n## ")
	for area := range strings.SplitSeq(areas, "\n## ") {
		name, text, _ := strings.Cut(area, "\n\n")
		assert.Regexp(t, "^"+command.String(), text, "%s: begins with a command", name)
		head, _, _ := strings.Cut(text, "\n|")
		assert.Regexp(t, `\d{4}-\d\d-\d\d`, head, "%s: has a date before its table", name)
		assert.Equal(t, 1, strings.Count(text, "\n|---|"), "%s: has one table", name)
	}
	inPage := map[string]bool{}
	for _, m := range command.FindAllStringSubmatch(page, -1) {
		inPage[m[1]] = true
	}
	assert.Equal(t, slices.Sorted(maps.Keys(shortest)), slices.Sorted(maps.Keys(inPage)), "commands of the variable shortest, and of docs/benchmarks.md")
	for c, short := range shortest {
		lines, _ := inShort(t, c, short)
		for _, line := range lines {
			exists(t, line)
		}
	}
}

// Each command of docs/benchmarks.md runs in its shortest form. A missed target is not a
// failure, because the short forms measure too little.
func TestBenchmarksRun(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs all benchmark programs")
	}
	for c, short := range shortest {
		t.Run(c, func(t *testing.T) {
			lines, variables := inShort(t, c, short)
			for _, line := range lines {
				cmd := exec.Command("sh", "-c", line) // #nosec G204 -- a command of the document
				cmd.Dir, cmd.Env = root, append(os.Environ(), variables...)
				out, err := cmd.CombinedOutput()
				if err != nil && !regexp.MustCompile(`(?m)^\d+ missed$`).Match(out) {
					t.Errorf("%s: %v\n%s", line, err, out)
				}
			}
		})
	}
}

// inShort returns the shell lines of a command in its shortest form, for the folder root,
// and the variables of their environment. A make target has the lines of its recipe.
func inShort(t *testing.T, command, short string) (lines, variables []string) {
	t.Helper()
	words := strings.Fields(short)
	n := 0
	for n < len(words) && strings.Contains(words[n], "=") {
		n++
	}
	variables = words[:n]
	lines = []string{command}
	if target, ok := strings.CutPrefix(command, "make "); ok {
		make := exec.Command("make", slices.Concat([]string{"--no-print-directory", "-n"}, strings.Fields(target), variables)...) // #nosec G204 -- a command of the document
		make.Dir, make.Env = root, append(os.Environ(), "MAKEFLAGS=", "GO=go")
		out, err := make.Output()
		require.NoError(t, err, command)
		lines = strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	for i := range lines {
		lines[i] = strings.Join(append([]string{lines[i]}, words[n:]...), " ")
	}
	return lines, variables
}

// exists checks a shell line of the form [cd FOLDER &&] [VARIABLE=x] go run PACKAGE FLAGS, or
// go test with a package. The package must define the flags of go run, and the tests or
// benchmarks that go test names.
func exists(t *testing.T, line string) {
	t.Helper()
	m := regexp.MustCompile(`^(?:cd (\S+) && )?(?:[A-Z_]+=\S+ )?go (run|test) (.*)$`).FindStringSubmatch(line)
	require.NotNil(t, m, "%s: not a known form of a command", line)
	words := strings.Fields(m[3])
	at := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, ".") })
	require.GreaterOrEqual(t, at, 0, "%s: no package", line)
	files, err := filepath.Glob(filepath.Join(root, m[1], words[at], "*.go"))
	require.NoError(t, err)
	var source strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file) // #nosec G304 -- a source file of the repository
		require.NoError(t, err)
		source.Write(text)
	}
	code := source.String()
	if m[2] == "run" {
		for _, w := range words[at+1:] {
			if name, ok := strings.CutPrefix(w, "-"); ok {
				assert.Regexp(t, `(?i)flags?\.[A-Za-z]+\((?:&[\w.]+, )?"`+name+`"`, code, "%s: the package defines no flag -%s", line, name)
			}
		}
		return
	}
	for i, w := range words[:len(words)-1] {
		pattern := strings.Trim(words[i+1], "'")
		if kind := map[string]string{"-run": "Test", "-bench": "Benchmark"}[w]; kind != "" && pattern != "^$" {
			found := slices.ContainsFunc(regexp.MustCompile(`(?m)^func (`+kind+`\w*)\(`).FindAllStringSubmatch(code, -1), func(f []string) bool {
				return regexp.MustCompile(pattern).MatchString(f[1])
			})
			assert.True(t, found, "%s: the package has no %s for %s %s", line, strings.ToLower(kind), w, pattern)
		}
	}
}
