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

// A client that shares no code with the SDK for Go: AWS's for JavaScript, which
// checks each digest. It runs where its packages are installed, by npm ci in
// testdata/node, and installs nothing itself.
func TestNodeClient(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	if _, err := os.Stat("testdata/node/node_modules/@aws-sdk/client-sqs/package.json"); err != nil {
		t.Skip("@aws-sdk/client-sqs is not installed: run npm ci in sqstest/testdata/node")
	}
	q := newQueue(t, sqstest.Config{})
	server := httptest.NewServer(sqstest.NewServer(q))
	defer server.Close()
	// #nosec G204 -- both arguments are the test's own
	client := exec.CommandContext(t.Context(), node, "client.mjs", server.URL, server.URL+"/"+sqstest.Account+"/"+q.Name())
	client.Dir = "testdata/node"
	out, err := client.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		t.Fatalf("%v:\n%s", err, failed.Stderr)
	}
	require.NoError(t, err)
	var saw struct {
		First, Again, Later [2]string
		Batch               [][2]string
		Received            [][3]string
		Refusal             string
		Moved               int
	}
	require.NoError(t, json.Unmarshal(out, &saw), string(out))

	stored := q.Messages()
	require.Len(t, stored, 3)
	assert.Equal(t, [2]string{stored[0].MessageID, stored[0].SequenceNumber}, saw.First)
	assert.Equal(t, saw.First, saw.Again, "suppressed with success")
	assert.Equal(t, [][2]string{{"old", stored[0].MessageID}, {"new", stored[1].MessageID}}, saw.Batch)
	assert.Equal(t, [][3]string{{stored[0].MessageID, "é🙂", "one"}, {stored[1].MessageID, "b", ""}}, saw.Received)
	assert.Equal(t, "MissingParameter", saw.Refusal)
	assert.Equal(t, 200, saw.Moved)
	assert.Equal(t, [2]string{stored[2].MessageID, stored[2].SequenceNumber}, saw.Later)
	assert.Len(t, q.Suppressed(), 2)
}
