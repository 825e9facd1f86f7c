package sqstest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// A program with AWS's client for JavaScript sends, receives and moves messages, and gets
// the IDs and sequence numbers that the queue stored. The client checks the digest of each
// message.
func TestNodeClient(t *testing.T) {
	node := nodeWithSDK(t)
	q := newQueue(t, sqstest.Config{})
	var saw struct {
		First, Again, Later [2]string
		Batch               [][2]string
		Received            [][3]string
		Refusal             string
		Moved               int
	}
	runClient(t, q, "testdata/node", node, []string{"client.mjs"}, &saw)

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
