package sqstest_test

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// runClient runs a program in another language with the queue on a socket and decodes
// the program's output.
func runClient(t *testing.T, q *sqstest.Queue, dir, program string, args []string, saw any) {
	t.Helper()
	server := httptest.NewServer(sqstest.NewServer(q))
	defer server.Close()
	args = append(args, server.URL, server.URL+"/"+sqstest.Account+"/"+q.Name())
	client := exec.CommandContext(t.Context(), program, args...) // #nosec G204 -- a program of the test
	client.Dir = dir
	out, err := client.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		t.Fatalf("%v:\n%s", err, failed.Stderr)
	}
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, saw), string(out))
}

// nodeWithSDK skips the test if AWS's SDK for JavaScript is not installed. Install it
// with npm ci in testdata/node; the test itself installs nothing.
func nodeWithSDK(t *testing.T) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	if _, err := os.Stat("testdata/node/node_modules/@aws-sdk/client-sqs/package.json"); err != nil {
		t.Skip("@aws-sdk/client-sqs is not installed: run npm ci in sqstest/testdata/node")
	}
	return node
}

func pythonWithSDK(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("boto3 takes a second to load")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	// #nosec G204 -- a program of the test
	if err := exec.CommandContext(t.Context(), python, "-c", "import boto3").Run(); err != nil {
		t.Skip("boto3 is not installed: pip install boto3")
	}
	return python
}

func TestFaultsFromPython(t *testing.T) {
	python := pythonWithSDK(t)
	faultsFrom(t, "testdata/python", python, "faults.py")
}

func TestFaultsFromNode(t *testing.T) {
	node := nodeWithSDK(t)
	faultsFrom(t, "testdata/node", node, "faults.mjs")
}

// faultsFrom runs a program of another language and checks the results. The program
// injects, lists and removes faults over HTTP. AWS's SDK in this program must retry after a
// lost answer and after a throttle.
func faultsFrom(t *testing.T, dir, program, file string) {
	t.Helper()
	q := newQueue(t, sqstest.Config{})
	var saw struct {
		Lost, Throttled string
		Failed          [][2]string
		Waiting         [][2]any
		Removed         int
	}
	runClient(t, q, dir, program, []string{file}, &saw)
	stored := q.Messages()
	require.Len(t, stored, 3)
	assert.Equal(t, stored[0].MessageID, saw.Lost, "the retry gets the original's ID")
	require.Len(t, q.Suppressed(), 1)
	assert.Equal(t, "lost", q.Suppressed()[0].Body)
	assert.Equal(t, stored[1].MessageID, saw.Throttled)
	assert.Equal(t, "entry 1", stored[2].Body)
	assert.Equal(t, [][2]string{{"2", "Broken"}}, saw.Failed)
	assert.Equal(t, [][2]any{{"server_error", 7.0}}, saw.Waiting)
	assert.Equal(t, 1, saw.Removed)
}
