package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

// canceler cancels the context of a command when the command prints its first lines.
type canceler struct {
	bytes.Buffer
	cancel context.CancelFunc
}

func (c *canceler) Write(b []byte) (int, error) {
	c.cancel()
	return c.Buffer.Write(b)
}

// An interrupted command prints how many keys it has resolved. The same command again
// resolves the remaining keys.
func TestKeysResolveContinues(t *testing.T) {
	source := filepath.Join(t.TempDir(), "keys.db")
	require.NoError(t, makeKeys(t.Context(), source, "many:150"))
	c := keysResolveCmd{As: "no_effect", Yes: true, Select: keySelection{Scope: "tenant-7"}, Database: source}

	ctx, cancel := context.WithCancel(t.Context())
	first := &canceler{cancel: cancel}
	err := c.run(ctx, stdio{out: first, err: &first.Buffer})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "64 keys resolved, run the command again for the other keys")
	assert.Equal(t, 64, strings.Count(first.String(), ": resolved as no_effect\n"))

	var second, summary bytes.Buffer
	require.NoError(t, c.run(t.Context(), stdio{out: &second, err: &summary}))
	assert.Equal(t, 86, strings.Count(second.String(), ": resolved as no_effect\n"))
	assert.Equal(t, "86 keys: 86 resolved, 0 already, 0 skipped\n", summary.String())
}

// The command reads a key, and resolves it only if no new attempt has begun since the read.
func TestKeysResolveSkipsChangedKeys(t *testing.T) {
	source := filepath.Join(t.TempDir(), "keys.db")
	require.NoError(t, makeKeys(t.Context(), source, "unresolved:a", "unresolved:b", "unresolved:c"))
	c := keysResolveCmd{As: "no_effect", Yes: true, Select: keySelection{Scope: "tenant-7"}, Database: source}
	var out bytes.Buffer
	err := withStore(t.Context(), source, func(store *sqlstore.Store) error {
		ending, err := c.ending()
		require.NoError(t, err)
		targets, missing, err := c.targets(t.Context(), store, nil, ending)
		require.NoError(t, err)
		require.Len(t, targets, 3)
		assert.Zero(t, missing)
		for _, target := range targets {
			again := idempotency.Claim{
				Key: target.key, Token: idempotency.NewToken(), Fingerprint: idempotency.FingerprintOf("test/1", []byte(target.key.Value)),
				Terms: idempotency.Terms{Lease: time.Millisecond, TTL: idempotency.Forever}, Resend: true,
			}
			switch target.key.Value {
			case "a": // the claim ends after a millisecond, and the key is unresolved once more
			case "b":
				again.Terms.Lease = time.Hour
			default:
				continue
			}
			outcome, err := store.Claim(t.Context(), again)
			require.NoError(t, err)
			require.Equal(t, idempotency.DecisionReclaimed, outcome.Decision)
		}
		require.Eventually(t, func() bool {
			found, err := store.Lookup(t.Context(), idempotency.Key{Scope: "tenant-7", Operation: "payments.create", Value: "a"})
			return err == nil && stateOf(found[0]) == stateUnresolved
		}, time.Minute, time.Millisecond)
		counts, err := c.resolveAll(t.Context(), stdio{out: &out}, store, targets)
		assert.Equal(t, map[string]int{keyResolved: 1, keySkipped: 2}, counts)
		return err
	})
	require.NoError(t, err)
	assert.Contains(t, out.String(), `key "a": skipped: it was tried again since it was read`)
	assert.Contains(t, out.String(), `key "b": skipped: it is running and not unresolved`)
	assert.Contains(t, out.String(), `key "c": resolved as no_effect`)
}
