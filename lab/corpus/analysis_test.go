package main

import (
	"os"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
)

// The go command runs this test binary as the tool of "go vet -vettool".
func TestMain(m *testing.M) {
	if vet.IsToolCall(os.Args[1:]) {
		vet.ToolMain(fifovet.Analyzer)
	}
	os.Exit(m.Run())
}

// Analysis from source gives the same findings as go vet.
func TestFromSource(t *testing.T) {
	if testing.Short() {
		t.Skip("checks the types of a part of the standard library, twice")
	}
	t.Setenv("GOPROXY", "off")
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"go.mod":       "module lost\n\ngo 1.26.0\n\nrequire github.com/aws/aws-sdk-go-v2/service/sqs v1.0.0\n\nreplace github.com/aws/aws-sdk-go-v2/service/sqs => ./sqs\n",
		"sqs/go.mod":   "module github.com/aws/aws-sdk-go-v2/service/sqs\n",
		"sqs/sqs.go":   "package sqs\n\ntype SendMessageInput struct{ MessageBody, MessageDeduplicationId *string }\n",
		"ids/ids.go":   "package ids\n\nimport \"time\"\n\nfunc Fresh() *string {\n\tid := time.Now().String()\n\treturn &id\n}\n",
		"send/send.go": "package send\n\nimport (\n\t\"github.com/aws/aws-sdk-go-v2/service/sqs\"\n\n\t\"lost/ids\"\n)\n\nfunc Input(body *string) *sqs.SendMessageInput {\n\treturn &sqs.SendMessageInput{MessageBody: body, MessageDeduplicationId: ids.Fresh()}\n}\n",
	})
	m := module{path: "lost", packages: []string{"./..."}}
	underGoVet, err := m.analyze(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.git = true
	fromSource, err := m.analyze(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(fromSource) != 1 || len(underGoVet) != 1 {
		t.Fatalf("got %v from source and %v under go vet, want one finding each", fromSource, underGoVet)
	}
	a, b := fromSource[0], underGoVet[0]
	if key(m, a) != key(m, b) || a.Severity != b.Severity || a.Message != b.Message || a.URL != b.URL {
		t.Errorf("got %+v from source, want %+v", a, b)
	}
	if key(m, a) != "lost send/send.go:10:50 SF002" || a.Severity != lint.Error {
		t.Errorf("got %s, %s", key(m, a), a.Severity)
	}

	m.packages = []string{"./no..."}
	if found, err := m.analyze(t.Context(), dir, nil); err == nil {
		t.Errorf("got %v and no error, for no packages", found)
	}
	m.packages = []string{"./..."}
	write(t, dir, map[string]string{"broken/broken.go": "package broken\n\nimport _ \"example.com/refused\"\n"})
	if found, err := m.analyze(t.Context(), dir, nil); err == nil {
		t.Errorf("got %v and no error, for a package that lacks an import", found)
	}
}
