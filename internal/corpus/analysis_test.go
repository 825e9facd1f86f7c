package main

import (
	"os"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
)

// The go command runs this test's binary as the tool.
func TestMain(m *testing.M) {
	if vet.IsToolCall(os.Args[1:]) {
		vet.ToolMain(fifovet.Analyzer)
	}
	os.Exit(m.Run())
}

// A module that is read from source has the findings of one under go vet.
func TestFromSource(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"go.mod":         "module example.com/lost\n\ngo 1.26.0\n\nrequire github.com/aws/aws-sdk-go-v2/service/sqs v1.0.0\n\nreplace github.com/aws/aws-sdk-go-v2/service/sqs => ./sqs\n",
		"sqs/go.mod":     "module github.com/aws/aws-sdk-go-v2/service/sqs\n",
		"sqs/sqs.go":     "package sqs\n\ntype SendMessageInput struct{ MessageBody, MessageGroupId, MessageDeduplicationId *string }\n",
		"send/send.go":   "package send\n\nimport \"github.com/aws/aws-sdk-go-v2/service/sqs\"\n\nfunc Input(body, id *string) *sqs.SendMessageInput {\n\treturn &sqs.SendMessageInput{MessageBody: body, MessageGroupId: id, MessageDeduplicationId: id}\n}\n",
		"broken/fine.go": "package broken\n",
	})
	m := module{path: "example.com/lost", dir: dir, packages: []string{"./..."}}
	underGoVet, err := m.findings(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	m.git = true
	fromSource, err := m.findings(t.Context(), nil)
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
	if key(m, a) != "example.com/lost send/send.go:6:70 SF005" || a.Severity != lint.Info {
		t.Errorf("got %s, %s", key(m, a), a.Severity)
	}

	write(t, dir, map[string]string{"broken/fine.go": "package broken\n\nimport _ \"example.com/refused\"\n"})
	if found, err := m.findings(t.Context(), nil); err == nil {
		t.Errorf("got %v and no error, for a package that lacks an import", found)
	}
}
