package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

// ledger trim deletes the entries of a verified export and no others. It deletes nothing
// without --yes, or if the export was altered.
func TestLedgerTrim(t *testing.T) {
	folder := t.TempDir()
	source, file := filepath.Join(folder, "keys.db"), filepath.Join(folder, "first.jsonl")
	require.NoError(t, makeKeys(t.Context(), source, "ledger", "unresolved:one", "unresolved:two"))
	open := func(do func(l *sqlstore.Ledger)) {
		db, _, err := rawDatabase(source)
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		l, err := sqlstore.OpenLedger(t.Context(), db, sqlstore.SQLite)
		require.NoError(t, err)
		do(l)
	}
	export := func(after ledger.Head) (text string) {
		open(func(l *sqlstore.Ledger) {
			var b bytes.Buffer
			_, err := l.Export(t.Context(), &b, after)
			require.NoError(t, err)
			text = b.String()
		})
		return text
	}
	exported := export(ledger.Head{})
	trim := func(text string, flags ...string) (int, string) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"ledger", "trim", source, file}, flags...), stdio{strings.NewReader(""), &out, &errs})
		return code, out.String() + errs.String()
	}

	code, said := trim(exported)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, said, "nothing was deleted; --yes")
	code, said = trim(strings.Replace(exported, "tenant-7", "tenant-8", 1), "--yes")
	assert.Equal(t, exitFindings, code)
	assert.Contains(t, said, "altered")
	assert.Equal(t, exported, export(ledger.Head{}), "nothing was deleted so far")

	code, said = trim(exported, "--yes", "--json")
	assert.Equal(t, exitFine, code, said)
	assert.Contains(t, said, `"trimmed":2}`)
	open(func(l *sqlstore.Ledger) {
		report, err := l.Verify(t.Context())
		require.NoError(t, err)
		assert.Zero(t, report.Entries)
		assert.NotZero(t, report.Trimmed)
	})
}
