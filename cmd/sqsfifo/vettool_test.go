package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
)

// goCommand runs lines of a shell in a folder, without a network.
type goCommand struct{ shell, dir string }

func (g goCommand) run(t *testing.T, line string) (output string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), g.shell, "-c", line) // #nosec G204 -- the lines below
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// The ways in which a team runs the command from its own module, by the README's
// lines. Nothing is downloaded: what the scratch module needs, this one needs, too.
func TestInAScratchModule(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command and runs the go command in a module of its own")
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell for the README's lines")
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	guide, err := os.ReadFile(filepath.Join(root, "docs/guide/linting.md"))
	require.NoError(t, err)
	readme := func(line string) string {
		t.Helper()
		assert.True(t, strings.Contains(string(text)+string(guide), "\n"+line+"\n"), "neither the README nor the guide has the line %s", line)
		return line
	}
	scratch := goCommand{shell, t.TempDir()}
	writeScratch(t, root, scratch.dir)

	out, code := scratch.run(t, readme("go get -tool github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo"))
	require.Zero(t, code, out)
	out, code = scratch.run(t, readme(`go vet -vettool="$(go tool -n sqsfifo)" ./...`))
	assert.Equal(t, exitFindings, code, out)
	assert.Contains(t, out, "raw/raw.go:11:")
	assert.Contains(t, out, " SF009: ")
	out, code = scratch.run(t, readme("go tool sqsfifo vet --write ./..."))
	assert.Equal(t, exitFindings, code, out)
	assert.Contains(t, out, "raw/raw.go:11:")
	assert.Contains(t, out, "orders/orders.go:10:17: SF020: ")
	assert.Contains(t, out, "wrote orders/"+vet.SkeletonFile)
	out, code = scratch.run(t, "go vet ./...")
	assert.Zero(t, code, "the test that was begun compiles with the suite as it is: %s", out)
	out, code = scratch.run(t, readme("go tool sqsfifo explain SF001"))
	assert.Zero(t, code, out)
	assert.Contains(t, out, "attr-only-identity")
	tool, code := scratch.run(t, "go tool -n sqsfifo")
	require.Zero(t, code, tool)

	// The rest needs no AWS SDK, which takes its time to be checked.
	inModule(t)
	stubs := goCommand{shell, "."}
	goVet := func(flags string) (output string, code int) {
		t.Helper()
		return stubs.run(t, "go vet -vettool="+strings.TrimSpace(tool)+" "+flags+" ./raw")
	}
	out, code = goVet("")
	assert.Equal(t, exitFindings, code, out)
	assert.Contains(t, out, " SF011: ")
	out, code = goVet("-sqsfifo.disable=SF009,SF011")
	assert.Zero(t, code, out)
	out, code = goVet("-json")
	assert.Zero(t, code, "-json of go vet exits with 0")
	assert.Contains(t, out, `"category": "SF009"`)
	_ = readme(`go vet -fix -vettool="$(go tool -n sqsfifo)" ./...`)
	out, code = goVet("-fix")
	assert.Zero(t, code, out)
	fixed, err := os.ReadFile("raw/raw.go")
	require.NoError(t, err)
	assert.NotContains(t, string(fixed), "DelaySeconds")
}

func writeScratch(t *testing.T, root, dir string) {
	t.Helper()
	sums, err := os.ReadFile("go.sum") // of the command's module, which needs all that the root does, and more
	require.NoError(t, err)
	more, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	for name, text := range map[string]string{
		"go.sum": string(sums) + string(more),
		"go.mod": "module example.com/scratch\n\ngo 1.26.0\n\n" +
			"require github.com/kansas-frontier-matrix/sqsfifo v0.0.0\n\n" +
			"replace github.com/kansas-frontier-matrix/sqsfifo => " + root + "\n" +
			"replace github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo => " + filepath.Join(root, "cmd", "sqsfifo") + "\n",
		"orders/orders.go": `package orders

import "github.com/kansas-frontier-matrix/sqsfifo"

type order struct {
	ID string ` + "`json:\"id\"`" + `
}

func Producer(client sqsfifo.Client, queueURL string) (*sqsfifo.Producer[order], error) {
	return sqsfifo.NewProducer(client, sqsfifo.Config[order]{QueueURL: queueURL})
}
`,
		"raw/raw.go": `package raw

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func Send(ctx context.Context, client *sqs.Client, body string) error {
	_, err := client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:    aws.String("https://sqs.us-east-1.amazonaws.com/000000000000/orders.fifo"),
		MessageBody: &body,
	})
	return err
}
`,
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}
