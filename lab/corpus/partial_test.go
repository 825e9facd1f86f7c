package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A module with a missing import yields findings from the code that does not need this
// import.
func TestLackingImports(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	files := map[string]string{
		"go.mod":     "module lost\n\ngo 1.26.0\n\nrequire (\n\tgithub.com/aws/aws-sdk-go-v2/service/sqs v1.0.0\n\texample.com/secret v1.0.0\n)\n\nreplace github.com/aws/aws-sdk-go-v2/service/sqs => ./sqs\n",
		"sqs/go.mod": "module github.com/aws/aws-sdk-go-v2/service/sqs\n",
		"sqs/sqs.go": "package sqs\n\ntype SendMessageInput struct{ MessageBody, MessageDeduplicationId *string }\n",
		"send/send.go": `package send

import (
	"time"

	"example.com/secret"
	"example.com/secret/log"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

type Order struct {
	ID     string
	Secret secret.Value
}

var Level = log.Level

func (o Order) Hidden() secret.Value { return o.Secret }

func (o Order) Text() string {
	text := o.Secret.String()
	return text
}

func Input(body *string, o Order) *sqs.SendMessageInput {
	log.Print(o.Secret)
	id := time.Now().String()
	switch {
	case len(o.ID) > 9:
		log.Fatal(o.ID)
	}
	return &sqs.SendMessageInput{MessageBody: body, MessageDeduplicationId: &id}
}
`,
	}
	m := module{path: "lost", git: true, packages: []string{"./send"}}
	for _, lacks := range [][]string{nil, {"example.com/secret"}} {
		m.dir, m.lacks = t.TempDir(), lacks
		write(t, m.dir, files)
		found, err := m.findings(t.Context(), nil)
		if lacks == nil {
			if err == nil {
				t.Error("a missing import is no error")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != 1 || key(m, found[0]) != "lost send/send.go:32:50 SF002" {
			t.Errorf("got %v, want one finding", found)
		}
	}
}

// A module without go.mod gets a new go.mod; a replacement by another folder of the
// repository points to a copy of that folder.
func TestCompleteGoMod(t *testing.T) {
	dir := t.TempDir()
	m := module{path: "example.com/old", requires: []string{"example.com/a@v1.2.3"}}
	if err := m.completeGoMod(dir, nil); err != nil {
		t.Fatal(err)
	}
	if text := goMod(t, dir); text != "module example.com/old\n\ngo 1.16\n\nrequire example.com/a v1.2.3\n" {
		t.Errorf("got %q", text)
	}

	folder, m := published(t)
	repos := opened(t, folder)
	dir, err := repos.checkOut(m)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	write(t, dir, map[string]string{"go.mod": "module example.com/nobody/lost/in\n\ngo 1.26.0\n\nreplace example.com/nobody/lost/other => ../other\n"})
	if err := m.completeGoMod(dir, repos); err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(dir, "_beside", "0")
	if text := goMod(t, dir); !strings.Contains(text, "=> "+beside) {
		t.Errorf("got %q", text)
	}
	if text := goMod(t, beside); text != "module example.com/nobody/lost/other\n" {
		t.Errorf("got %q", text)
	}
}

func goMod(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
