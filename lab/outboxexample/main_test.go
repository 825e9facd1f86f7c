package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func Example() {
	if err := run(context.Background(), nil, os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 5 scenes are stored, each with its event; the queue has 0 messages
	// a transaction that fails leaves no event: 5 are in the outbox
	// the relay dies after a send in each group: the queue has 2 messages, the outbox still 5
	// the next one sends all 5; SQS knows 2 of them and has 5 messages
}

func TestNoDatabase(t *testing.T) {
	require.Error(t, run(t.Context(), []string{filepath.Join(t.TempDir(), "missing", "events.db")}, &strings.Builder{}))
}

// A second run with the same database file fails, because the scenes of the first run are
// already in the database. The scenes are not sent again.
func TestSecondRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events?.db")
	require.NoError(t, run(t.Context(), []string{path}, &strings.Builder{}))
	require.Error(t, run(t.Context(), []string{path}, &strings.Builder{}), "the scenes are there already")
}
