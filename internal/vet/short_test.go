package vet_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// The go command checks a package in a second if the package imports nothing of the standard
// library. So this test also runs under go test -short.
func TestModuleWithoutTheStandardLibrary(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":       "module example.com/short\n\ngo 1.26.0\n\nrequire github.com/aws/aws-sdk-go-v2/service/sqs v1.0.0\n\nreplace github.com/aws/aws-sdk-go-v2/service/sqs => ./sqs\n",
		"sqs/go.mod":   "module github.com/aws/aws-sdk-go-v2/service/sqs\n",
		"sqs/sqs.go":   "package sqs\n\ntype SendMessageInput struct{ MessageBody, MessageDeduplicationId *string }\n",
		"send/send.go": "package send\n\nimport \"github.com/aws/aws-sdk-go-v2/service/sqs\"\n\nfunc Input(body *string) *sqs.SendMessageInput {\n\tid := \"constant\"\n\treturn &sqs.SendMessageInput{MessageBody: body, MessageDeduplicationId: &id}\n}\n",
		"good/good.go": "package good\n\nimport \"github.com/aws/aws-sdk-go-v2/service/sqs\"\n\nfunc Input(body, id *string) *sqs.SendMessageInput {\n\treturn &sqs.SendMessageInput{MessageBody: body, MessageDeduplicationId: id}\n}\n",
	} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	report, err := vet.Run(t.Context(), withRules(vet.Options{Dir: dir, Patterns: []string{"./..."}}))
	require.NoError(t, err)
	assert.Equal(t, 2, report.Packages)
	require.Len(t, report.Findings, 1)
	f := report.Findings[0]
	assert.Equal(t, "send.go", filepath.Base(f.Start.Filename))
	assert.Equal(t, 7, f.Start.Line)
	assert.Equal(t, "SF003", f.Rule)
	assert.Equal(t, lint.Error, f.Severity)
}
