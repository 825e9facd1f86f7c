package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
)

// The ways in which a team runs the command from its own module: as a tool of
// go.mod, under go vet, with the AWS SDK as it is. Nothing is downloaded: what the
// scratch module needs, this one needs, too.
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
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	write("go.sum", string(sums))
	write("go.mod", "module example.com/scratch\n\ngo 1.26.0\n\n"+
		"require github.com/kansas-frontier-matrix/sqsfifo v0.0.0\n\n"+
		"replace github.com/kansas-frontier-matrix/sqsfifo => "+root+"\n")
	write("orders/orders.go", `package orders

import "github.com/kansas-frontier-matrix/sqsfifo"

type order struct {
	ID string `+"`json:\"id\"`"+`
}

func Producer(client sqsfifo.Client, queueURL string) (*sqsfifo.Producer[order], error) {
	return sqsfifo.NewProducer(client, sqsfifo.Config[order]{QueueURL: queueURL})
}
`)
	write("raw/raw.go", `package raw

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
`)
	manual, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	run := func(line string) (output string, code int) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), shell, "-c", line) // #nosec G204 -- the lines below
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			require.NoError(t, err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	fromReadme := func(line string) (output string, code int) {
		t.Helper()
		assert.Contains(t, string(manual), "\n"+line+"\n", "the README has the line")
		return run(line)
	}

	out, code := fromReadme("go get -tool github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo")
	require.Zero(t, code, out)

	const finding = "raw/raw.go:11:"
	const vettool = `go vet -vettool="$(go tool -n sqsfifo)" `
	out, code = fromReadme(vettool + "./...")
	assert.Equal(t, exitFindings, code, out)
	assert.Contains(t, out, finding)
	assert.Contains(t, out, " SF009: ")
	out, code = run(vettool + "-sqsfifo.disable=SF009 ./...")
	assert.Zero(t, code, out)
	out, code = run(vettool + "-json ./...")
	assert.Zero(t, code, "-json of go vet exits with 0")
	assert.Contains(t, out, `"category": "SF009"`)

	out, code = fromReadme("go tool sqsfifo vet ./...")
	assert.Equal(t, exitFindings, code, out)
	assert.Contains(t, out, finding)
	assert.Contains(t, out, "orders/orders.go:10:17: SF020: ")
	out, code = fromReadme("go tool sqsfifo vet -write ./...")
	assert.Equal(t, exitFindings, code, out)
	assert.Contains(t, out, "wrote orders/"+vet.SkeletonFile)

	// The test that was begun compiles, fails, and says what is missing.
	out, code = run("go vet ./...")
	assert.Zero(t, code, out)
	out, code = run("go test ./...")
	assert.Equal(t, 1, code, out)
	assert.Contains(t, out, "Suite needs Send and at least two Events")
	out, code = run("go tool sqsfifo vet -disable=SF009 ./...")
	assert.Zero(t, code, out)

	out, code = run("go tool sqsfifo explain SF009")
	assert.Zero(t, code, out)
	assert.Contains(t, out, "missing-group-id")
}
