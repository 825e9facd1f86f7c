package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
)

// A program whose arguments are too long for the system can handle no message, so the command
// ends. If only the environment of a message is too long, the message fails for good.
func TestProgramTooLong(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the limit of 128 KiB for a text is Linux's")
	}
	long := strings.Repeat("x", 140_000)
	for _, tc := range []struct {
		command []string
		group   string
		ends    bool
	}{
		{command: []string{"true", long}, group: "g", ends: true},
		{command: []string{"true"}, group: long},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		r := newMessageRunner(tc.command, time.Minute, stdio{out: new(bytes.Buffer), err: new(bytes.Buffer)}, cancel)
		err := r.handle(ctx, consumer.Message[json.RawMessage]{Group: tc.group})
		require.ErrorContains(t, err, "argument list too long")
		var fatal *fatalError
		assert.Equal(t, tc.ends, errors.As(context.Cause(ctx), &fatal))
		assert.Equal(t, !tc.ends, strings.Contains(err.Error(), "the message adds 140"))
	}
}
