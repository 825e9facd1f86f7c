package vet_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// The go command checks a package in a second if the package imports nothing of the standard
// library. So this test also runs under go test -short.
func TestModuleWithoutTheStandardLibrary(t *testing.T) {
	report, err := vet.Run(t.Context(), withRules(vet.Options{Dir: shortModule(t), Patterns: []string{"./..."}}))
	require.NoError(t, err)
	assert.Equal(t, 3, report.Packages)
	require.Len(t, report.Findings, 1)
	f := report.Findings[0]
	assert.Equal(t, "send.go", filepath.Base(f.Start.Filename))
	assert.Equal(t, 7, f.Start.Line)
	assert.Equal(t, "SF003", f.Rule)
	assert.Equal(t, lint.Error, f.Severity)
}

// Package user imports package good, and good has a test file. So the go command has two
// answers about good, without and with the test file. Only the second has all findings. The
// first must not hide that the second is lost.
func TestAnAnswerWithTestsThatIsMissing(t *testing.T) {
	goBinary(t) // skips the test without a shell
	dir, tool := shortModule(t), filepath.Join(t.TempDir(), "tool")
	run := func(lost string) (*vet.Report, error) {
		script := fmt.Sprintf(`#!/bin/sh
%q "$@" || exit
case "$*" in
*-dependencies=%s\ *.cfg)
	for unit; do :; done
	grep -q good_test.go "$unit" && : > "$(sed -n 's/.*"Stdout": "\(.*\)".*/\1/p' "$unit")"
esac
exit 0
`, os.Args[0], lost)
		require.NoError(t, os.WriteFile(tool, []byte(script), 0o700)) // #nosec G306 -- a program
		// The text of the findings is new in each run, so the go command's cache has no answer.
		text := fmt.Sprint(time.Now().UnixNano())
		return vet.Run(t.Context(), withNames(text, false, vet.Options{Dir: dir, Patterns: []string{"./good", "./user"}, Tool: tool}))
	}
	report, err := run("1")
	require.NoError(t, err)
	assert.Len(t, report.Findings, 2, "the functions Input and example")
	_, err = run("*")
	require.ErrorContains(t, err, "no answer about example.com/short/good: ")
}

// shortModule writes a module that imports nothing of the standard library.
func shortModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":            "module example.com/short\n\ngo 1.26.0\n\nrequire github.com/aws/aws-sdk-go-v2/service/sqs v1.0.0\n\nreplace github.com/aws/aws-sdk-go-v2/service/sqs => ./sqs\n",
		"sqs/go.mod":        "module github.com/aws/aws-sdk-go-v2/service/sqs\n",
		"sqs/sqs.go":        "package sqs\n\ntype SendMessageInput struct{ MessageBody, MessageDeduplicationId *string }\n",
		"send/send.go":      "package send\n\nimport \"github.com/aws/aws-sdk-go-v2/service/sqs\"\n\nfunc Input(body *string) *sqs.SendMessageInput {\n\tid := \"constant\"\n\treturn &sqs.SendMessageInput{MessageBody: body, MessageDeduplicationId: &id}\n}\n",
		"good/good.go":      "package good\n\nimport \"github.com/aws/aws-sdk-go-v2/service/sqs\"\n\nfunc Input(body, id *string) *sqs.SendMessageInput {\n\treturn &sqs.SendMessageInput{MessageBody: body, MessageDeduplicationId: id}\n}\n",
		"good/good_test.go": "package good\n\nfunc example() {}\n",
		"user/user.go":      "package user\n\nimport _ \"example.com/short/good\"\n",
	} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	return dir
}
