package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/format"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sdk "github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
)

// inModule creates a Go module with findings in two packages, and changes the working
// folder to it. The module imports stubs, and not the real packages of sqsfifo and of the
// AWS SDK.
func inModule(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("checks the types of a good part of the standard library")
	}
	const stubs = "../../internal/vet/testdata/module"
	dir := t.TempDir()
	for _, name := range []string{"sqs", "sqsfifo", "tagged", "tested", "untested"} {
		require.NoError(t, os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(stubs, name))))
	}
	text, err := os.ReadFile(filepath.Join(stubs, "go.mod"))
	require.NoError(t, err)
	t.Chdir(dir)
	require.NoError(t, os.WriteFile("go.mod", text, 0o600))
	require.NoError(t, os.WriteFile("sqs/input.go", []byte(`package sqs

type SendMessageInput struct {
	QueueUrl, MessageBody, MessageGroupId *string
	DelaySeconds                          int32
}

func (*Client) SendMessage(*SendMessageInput) error { return nil }
`), 0o600))
	for name, code := range map[string]string{"orders": orders, "raw": raw} {
		require.NoError(t, os.Mkdir(name, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(name, name+".go"), []byte(code), 0o600))
	}
}

const orders = `package orders

import "github.com/kansas-frontier-matrix/sqsfifo"

func Producer(client any) (*sqsfifo.Producer[string], error) {
	return sqsfifo.NewProducer(client, sqsfifo.Config[string]{})
}
`

const raw = `package raw

import "github.com/aws/aws-sdk-go-v2/service/sqs"

func Send(c *sqs.Client, queueURL, body string) error {
	return c.SendMessage(&sqs.SendMessageInput{
		QueueUrl:     new("https://sqs.us-east-1.amazonaws.com/000000000000/orders.fifo"),
		MessageBody:  &body,
		DelaySeconds: 5,
	})
}
`

const (
	noGroup = "raw/raw.go:6:"
	noTest  = "orders/orders.go:6:17: SF020: error: package orders constructs a producer and no test of the package calls compliance.TestProducer; sqsfifo vet --write begins one\n"
	page    = "https://github.com/kansas-frontier-matrix/sqsfifo/blob/main/docs/rules.md"
)

func TestVet(t *testing.T) {
	inModule(t)
	stdout, stderr, code := shell(t, "", "vet", "./orders", "./raw")
	assert.Equal(t, exitFindings, code, stderr)
	rest, found := strings.CutPrefix(stdout, noTest)
	assert.True(t, found, stdout)
	assert.True(t, strings.HasPrefix(rest, noGroup), rest)
	assert.Contains(t, rest, " SF009: error: ")
	assert.Contains(t, rest, " SF011: error: ")
	assert.True(t, strings.HasSuffix(rest, "\n\nSF009 missing-group-id: "+page+"#sf009\nSF011 fifo-delay: "+page+"#sf011\nSF020 no-compliance-test: "+page+"#sf020\n"), rest)
	assert.Equal(t, "packages: 2, errors: 3, warnings: 0, infos: 0\n", stderr)

	stdout, stderr, code = shell(t, "", "vet", "./tested")
	assert.Equal(t, exitFine, code, stderr)
	assert.Empty(t, stdout)
	assert.Equal(t, "packages: 1, errors: 0, warnings: 0, infos: 0\n", stderr)

	_, _, code = shell(t, "", "vet", "./tagged")
	assert.Equal(t, exitFindings, code)
	stdout, _, code = shell(t, "", "vet", "--tags", "slow", "./tagged")
	assert.Equal(t, exitFine, code, stdout)

	t.Chdir("orders")
	stdout, _, code = shell(t, "", "vet")
	assert.Equal(t, exitFindings, code)
	assert.Equal(t, strings.TrimPrefix(noTest, "orders/")+"\nSF020 no-compliance-test: "+page+"#sf020\n", stdout)
}

// The analyzer's flags belong to the whole process. Flags of one run must not affect the
// next.
func TestVetFlags(t *testing.T) {
	inModule(t)
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{"--disable", "SF009"}, []string{"SF020", "SF011"}},
		{nil, []string{"SF020", "SF009", "SF011"}},
		{[]string{"--disable=SF011, SF020"}, []string{"SF009"}},
		{[]string{"--disable=SF009,SF011,SF020"}, nil},
		{[]string{"--disable=all"}, nil},
		{[]string{"--strict", "--forbid-raw", "--nondet=example.com/shop/raw.Send", "--enable=all", "--disable=SF001"}, []string{"SF020", "SF008", "SF009", "SF011"}},
	} {
		args := append(append([]string{"vet", "--format=json"}, tc.args...), "./orders", "./raw")
		stdout, stderr, code := shell(t, "", args...)
		var got []string
		for line := range strings.Lines(stdout) {
			var f struct{ Rule string }
			require.NoError(t, json.Unmarshal([]byte(line), &f))
			got = append(got, f.Rule)
		}
		assert.Equal(t, tc.want, got, "%q: %s", args, stderr)
		assert.Equal(t, len(tc.want) > 0, code == exitFindings)
	}
}

// The command vet has each flag of the analyzer.
func TestVetHasTheFlagsOfTheAnalyzer(t *testing.T) {
	parser, err := newParser(io.Discard)
	require.NoError(t, err)
	var names []string
	for _, f := range commandNode(parser.Model.Node, "vet").Flags {
		names = append(names, f.Name)
	}
	fifovet.Analyzer.Flags.VisitAll(func(f *flag.Flag) { assert.Contains(t, names, f.Name) })
}

func TestVetFormats(t *testing.T) {
	inModule(t)
	stdout, _, code := shell(t, "", "vet", "--format=github", "./orders", "./raw")
	assert.Equal(t, exitFindings, code)
	assert.Contains(t, stdout, "::error file=raw/raw.go,line=6,col=")
	assert.Contains(t, stdout, "::error file=orders/orders.go,line=6,col=17,endColumn=28,title=SF020::package orders")

	stdout, _, code = shell(t, "", "vet", "--format=sarif", "./orders")
	assert.Equal(t, exitFindings, code)
	assert.Contains(t, stdout, `"ruleId": "SF020"`)
	assert.Contains(t, stdout, `"version": "v`+sdk.Version+`"`)
	stdout, _, code = shell(t, "", "vet", "--format=sarif", "./tested")
	assert.Equal(t, exitFine, code)
	assert.Contains(t, stdout, `"results": []`)
}

func TestVetWrites(t *testing.T) {
	inModule(t)
	_, stderr, code := shell(t, "", "vet", "--write", "./...")
	assert.Equal(t, exitFindings, code)
	assert.Contains(t, stderr, "wrote orders/"+vet.SkeletonFile+": fill in Send and Events\n")
	assert.Contains(t, stderr, "wrote untested/"+vet.SkeletonFile)
	assert.NoFileExists(t, filepath.Join("tested", vet.SkeletonFile))
	stdout, _, _ := shell(t, "", "vet", "./orders", "./untested")
	assert.NotContains(t, stdout, "SF020")

	// An existing file is not changed, whatever it contains.
	require.NoError(t, os.WriteFile("orders/"+vet.SkeletonFile, []byte("package orders\n"), 0o600))
	_, stderr, code = shell(t, "", "vet", "--write", "./orders")
	assert.Equal(t, exitFindings, code)
	assert.Contains(t, stderr, "left alone: ")
	text, err := os.ReadFile("orders/" + vet.SkeletonFile)
	require.NoError(t, err)
	assert.Equal(t, "package orders\n", string(text))
}

func TestVetFailOn(t *testing.T) {
	inModule(t)
	for _, tc := range []struct {
		args []string
		code int
	}{
		{[]string{"./raw"}, exitFindings},
		{[]string{"--fail-on=error", "./raw"}, exitFindings},
		{[]string{"--fail-on=warning", "./raw"}, exitFindings},
		{[]string{"--fail-on=never", "./raw"}, exitFine},
		{[]string{"./warned"}, exitFindings},
		{[]string{"--fail-on=error", "./warned"}, exitFine},
		{[]string{"--fail-on=warning", "./warned"}, exitFindings},
		{[]string{"--fail-on=never", "./nowhere"}, exitFailed},
	} {
		require.NoError(t, os.MkdirAll("warned", 0o700))
		require.NoError(t, os.WriteFile("warned/warned.go", []byte("package warned\n\n//sqsfifo:ignore SF009 -- nothing is sent here\nvar Nothing int\n"), 0o600))
		stdout, stderr, code := shell(t, "", append([]string{"vet"}, tc.args...)...)
		assert.Equal(t, tc.code, code, "%q: %s%s", tc.args, stdout, stderr)
		assert.Equal(t, tc.code == exitFailed, stdout == "", "%q reports what it found", tc.args)
	}
}

// A team records present findings in a baseline. Later runs report only new findings, even
// after lines have moved. They also report baseline entries without a finding, which the
// team can delete.
func TestVetBaseline(t *testing.T) {
	inModule(t)
	const file = "known.jsonl"
	stdout, stderr, code := shell(t, "", "vet", "--write-baseline", file, "./...")
	assert.Equal(t, exitFine, code, stderr)
	assert.Empty(t, stdout)
	assert.Equal(t, "wrote known.jsonl: 5 findings\n", stderr)
	first, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(first), `{"file":"raw/raw.go","function":"Send","rule":"SF011","severity":"error","message":"DelaySeconds is 5`)

	check := func() (stdout, stderr string, code int) { return shell(t, "", "vet", "--baseline", file, "./...") }
	stdout, stderr, code = check()
	assert.Equal(t, exitFine, code, stdout)
	assert.Empty(t, stdout)
	assert.Equal(t, "packages: 5, errors: 0, warnings: 0, infos: 0, in the baseline: 5\n", stderr)

	text, err := os.ReadFile("raw/raw.go")
	require.NoError(t, err)
	moved := strings.Replace(string(text), "func Send", "// Send sends.\n//\n// It does.\nfunc Send", 1)
	moved += strings.Replace(string(text)[strings.Index(string(text), "func Send"):], "func Send", "\nfunc Another", 1)
	require.NoError(t, os.WriteFile("raw/raw.go", []byte(moved), 0o600))
	stdout, stderr, code = check()
	assert.Equal(t, exitFindings, code)
	assert.Equal(t, 2, strings.Count(stdout, "raw/raw.go:"), "those of the new function: %s", stdout)
	assert.Contains(t, stdout, "raw/raw.go:20:3: SF011: error: ")
	assert.NotContains(t, stderr, "out of date")

	require.NoError(t, os.WriteFile("raw/raw.go", []byte(strings.Replace(string(text), "\t\tDelaySeconds: 5,\n", "", 1)), 0o600))
	stdout, stderr, code = check()
	assert.Equal(t, exitFine, code, stdout)
	assert.Contains(t, stderr, "out of date in known.jsonl (1): raw/raw.go: Send: SF011: error: DelaySeconds is 5")
	_, stderr, _ = shell(t, "", "vet", "--baseline", file, "./orders")
	assert.NotContains(t, stderr, "out of date", "what was not checked may be there still")

	_, _, code = shell(t, "", "vet", "--write-baseline", file, "./raw")
	assert.Equal(t, exitFine, code)
	second, err := os.ReadFile(file)
	require.NoError(t, err)
	var without []string
	for line := range strings.Lines(string(first)) {
		if !strings.Contains(line, "SF011") {
			without = append(without, line)
		}
	}
	assert.Equal(t, strings.Join(without, ""), string(second), "lines about other packages stay")

	for _, args := range [][]string{{"--baseline", "nowhere"}, {"--baseline", "raw/raw.go"}, {"--baseline", file, "--write-baseline", file}} {
		stdout, stderr, code = shell(t, "", append([]string{"vet"}, args...)...)
		assert.Equal(t, exitFailed, code, "%q", args)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, "baseline", "%q", args)
	}
}

func TestVetFix(t *testing.T) {
	inModule(t)
	code := strings.Replace(raw, "package raw", "// Code generated by a test. DO NOT EDIT.\n\npackage raw", 1)
	require.NoError(t, os.Mkdir("generated", 0o700))
	require.NoError(t, os.WriteFile("generated/generated.go", []byte(code), 0o600))
	stdout, stderr, exit := shell(t, "", "vet", "--fix", "./raw", "./generated")
	assert.Equal(t, exitFindings, exit)
	assert.Contains(t, stderr, "fixed raw/raw.go\n")
	assert.NotContains(t, stderr, "fixed generated")
	assert.NotContains(t, stdout, "raw/raw.go:9", "what was fixed is not reported")
	assert.Contains(t, stdout, noGroup)
	assert.Contains(t, stdout, "generated/generated.go:11:3: SF011: ")
	text, err := os.ReadFile("raw/raw.go")
	require.NoError(t, err)
	want, err := format.Source([]byte(strings.Replace(raw, "\t\tDelaySeconds: 5,\n", "", 1)))
	require.NoError(t, err)
	assert.Equal(t, string(want), string(text))
	text, err = os.ReadFile("generated/generated.go")
	require.NoError(t, err)
	assert.Equal(t, code, string(text))
}

func TestColouredOnATerminalOnly(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer file.Close()
	assert.False(t, coloured(file), "a file")
	assert.False(t, coloured(&strings.Builder{}))
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer device.Close()
	assert.True(t, coloured(device), "a device, as a terminal is")
	t.Setenv("NO_COLOR", "1")
	assert.False(t, coloured(device))
	t.Setenv("NO_COLOR", "")
	for _, term := range []string{"", "dumb"} {
		t.Setenv("TERM", term)
		assert.False(t, coloured(device), term)
	}
}

func TestVetNamesWhatDoesNotCompile(t *testing.T) {
	inModule(t)
	require.NoError(t, os.WriteFile("tested/broken.go", []byte("package tested\n\nvar a int = \"a\"\n"), 0o600))
	stdout, stderr, code := shell(t, "", "vet", "./...")
	assert.Equal(t, exitFailed, code)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "\nexample.com/shop/tested\n\t")
	assert.Contains(t, stderr, "broken.go:3:13: ")
}

// If "go vet" has no answer about a package, the command does not exit as after a clean run.
func TestVetNamesWhatHasNoAnswer(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell")
	}
	goCommand, err := exec.LookPath("go")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	t.Setenv("GOWORK", "off")
	require.NoError(t, os.WriteFile("go.mod", []byte("module example.com/lost\n\ngo 1.26.0\n"), 0o600))
	require.NoError(t, os.WriteFile("lost.go", []byte("package lost\n"), 0o600))
	fake := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = vet ] || exec %q \"$@\"\necho '{\"example.com/other\": {}}'\n", goCommand)
	require.NoError(t, os.WriteFile(filepath.Join(fake, "go"), []byte(script), 0o700)) // #nosec G306 -- a program
	t.Setenv("PATH", fake+string(os.PathListSeparator)+os.Getenv("PATH"))
	stdout, stderr, code := shell(t, "", "vet", "--fail-on=never", "./...")
	assert.Equal(t, exitFailed, code, stderr)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "no answer about example.com/lost: ")
}

func TestExplain(t *testing.T) {
	stdout, stderr, code := shell(t, "", "explain", "SF009")
	assert.Equal(t, exitFine, code)
	assert.Empty(t, stderr)
	for _, part := range []string{
		"SF009 missing-group-id (error; on message, source; since 0.1.0)\n", "\nthe message has no group ID\n", "A message for a FIFO queue has a MessageGroupId.",
		"\nsource: F-050, F-070\n", "\nfix:    set MessageGroupId",
	} {
		assert.Contains(t, stdout, part)
	}
	byName, _, code := shell(t, "", "explain", "Missing-Group-ID")
	assert.Equal(t, exitFine, code)
	assert.Equal(t, stdout, byName)
	for _, r := range append(lint.Rules(), vet.Rules()...) {
		stdout, _, code := shell(t, "", "explain", r.ID)
		assert.Equal(t, exitFine, code)
		_, rest, _ := strings.Cut(stdout, "\n\n")
		wording, rest, _ := strings.Cut(rest, "\n\n")
		assert.Equal(t, strings.Join(strings.Fields(r.Wording), " "), strings.ReplaceAll(wording, "\n", " "))
		for line := range strings.Lines(wording) {
			assert.LessOrEqual(t, len(line), 81, r.ID)
		}
		_, rest, _ = strings.Cut(rest, "\nbad:\n")
		bad, good, _ := strings.Cut(rest, "\ngood:\n")
		assert.Equal(t, strings.TrimRight(r.Bad, "\n"), unindented(bad), r.ID)
		assert.Equal(t, strings.TrimRight(r.Good, "\n"), unindented(good), r.ID)
	}

	stdout, _, code = shell(t, "", "explain", "SF009", "sf001")
	assert.Equal(t, exitFine, code)
	assert.Contains(t, stdout, "\n\nSF001 attr-only-identity (error")

	stdout, _, code = shell(t, "", "explain", "unused-ignore")
	assert.Equal(t, exitFine, code)
	assert.Contains(t, stdout, "unused-ignore (warning")
	assert.NotContains(t, stdout, "source:")
}

func unindented(code string) string {
	return strings.TrimRight(strings.ReplaceAll("\n"+code, "\n    ", "\n"), "\n")[1:]
}

func TestExplainLists(t *testing.T) {
	stdout, _, code := shell(t, "", "explain")
	assert.Equal(t, exitFine, code)
	for _, r := range append(lint.Rules(), vet.Rules()...) {
		assert.Equal(t, 1, strings.Count("\n"+stdout, "\n"+r.ID+" "), r.ID)
		assert.Regexp(t, "(?m)^"+r.ID+" +"+r.Severity.String()+" +"+r.Passes.String()+" +"+r.Name+" +"+regexp.QuoteMeta(r.Title)+"$", stdout)
	}
}

func TestExplainUnknown(t *testing.T) {
	for name, nearest := range map[string]string{"SF0001": "SF001", "sf053x": "SF053", "missing-group": "SF009 missing-group-id", "too-larg": "SF050 too-large"} {
		stdout, stderr, code := shell(t, "", "explain", "SF001", name)
		assert.Equal(t, exitFailed, code)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, "the nearest is "+nearest, name)
	}
	_, stderr, code := shell(t, "", "explain", "")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, `no rule ""`)
}
