package kfm

import (
	"encoding/json"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// mutations maps the source file of a reference implementation to a file of mutations. A
// mutation replaces a piece of the source text, and so breaks one rule. Each rule has one
// mutation.
var mutations = map[string]string{"kfm_message.py": "testdata/mutations_python.jsonl", "kfm_message.js": "testdata/mutations_javascript.jsonl"}

// A mutation makes a reference implementation break one rule. A test vector of this rule
// must then fail.
func TestAFaultInEachRuleFailsAVector(t *testing.T) {
	if testing.Short() {
		t.Skip("two processes for each rule")
	}
	files := map[string]string{} // file of test vectors, by rule
	folder := t.TempDir()
	for _, v := range vectors(t) {
		out, err := operations[v.Op](&v.In)
		if err == nil {
			v.Out = out
		}
		line, err := marshal(v)
		require.NoError(t, err)
		files[v.Rule] += line + "\n"
	}
	for rule, lines := range files {
		file := filepath.Join(folder, rule+".jsonl")
		require.NoError(t, os.WriteFile(file, []byte(lines), 0o600))
		files[rule] = file
	}
	rules := slices.Sorted(maps.Keys(rulesOfSpecification(t)))
	for _, r := range references {
		t.Run(r.file, func(t *testing.T) {
			source, err := os.ReadFile(filepath.Join(r.folder, r.file))
			require.NoError(t, err)
			harness, err := os.ReadFile(filepath.Join(r.folder, r.harness))
			require.NoError(t, err)
			copied := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(copied, r.harness), harness, 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(copied, "package.json"), []byte(`{"type":"module"}`), 0o600))
			var held []string
			readLines(t, mutations[r.file], func(line []byte) {
				var m struct{ Rule, Old, New string }
				require.NoError(t, json.Unmarshal(line, &m))
				require.Equal(t, 1, strings.Count(string(source), m.Old), "%s: the text to replace: %s", m.Rule, m.Old)
				faulty := strings.Replace(string(source), m.Old, m.New, 1)
				require.NoError(t, os.WriteFile(filepath.Join(copied, r.file), []byte(faulty), 0o600))
				out, err := r.command(t, copied, files[m.Rule]).CombinedOutput()
				if assert.Error(t, err, "%s: no vector fails with %s", m.Rule, m.New) {
					assert.True(t, strings.HasPrefix(string(out), m.Rule+"-"), "%s with %s: %s", m.Rule, m.New, out)
				}
				held = append(held, m.Rule)
			})
			slices.Sort(held)
			assert.Equal(t, rules, slices.Compact(held), "each rule of the specification has a fault")
		})
	}
}

// sentEvent is a line of reference/events.jsonl.
type sentEvent struct {
	Source     string            `json:"source"`
	Key        []string          `json:"key"`
	Time       time.Time         `json:"time"`
	Group      string            `json:"group"`
	Payload    json.RawMessage   `json:"payload"`
	Attributes map[string]string `json:"attributes"`
}

// MarshalJSON returns the payload.
func (e sentEvent) MarshalJSON() ([]byte, error) { return e.Payload, nil }

// Producers in Go, Python and TypeScript send the same event. The queue stores one message
// and suppresses the others.
func TestOneEventInThreeLanguagesIsOneMessage(t *testing.T) {
	const file = "../../reference/events.jsonl"
	readLines(t, file, func(line []byte) {
		q, err := sqstest.NewQueue(sqstest.Config{})
		require.NoError(t, err)
		server := httptest.NewServer(sqstest.NewServer(q))
		defer server.Close()

		var e sentEvent
		require.NoError(t, json.Unmarshal(line, &e))
		p, err := sqsfifo.NewProducer(q, sqsfifo.Config[sentEvent]{
			QueueURL: q.URL(), Source: e.Source,
			Identify: func(e sentEvent) (sqsfifo.Identity, error) {
				key, err := sqsfifo.JoinKey(e.Key...)
				return sqsfifo.Identity{DedupeKey: key, Group: e.Group, Time: e.Time}, err
			},
			Attributes: func(e sentEvent) map[string]string { return e.Attributes },
		})
		require.NoError(t, err)
		_, err = p.Send(t.Context(), e)
		require.NoError(t, err)
		require.NoError(t, p.Close(t.Context()))

		sent := 1 + sendByReferences(t, string(line), server.URL, server.URL+"/"+sqstest.Account+"/"+q.Name())
		assert.Len(t, q.Messages(), 1)
		assert.Len(t, q.Suppressed(), sent-1)
		for _, s := range q.Suppressed() {
			assert.Equal(t, q.Messages()[0].Body, s.Body)
			assert.Equal(t, q.Messages()[0].GroupID, s.GroupID)
		}
	})
}

// sendByReferences sends an event with each reference implementation whose interpreter is
// installed, and returns the number of sends.
func sendByReferences(t *testing.T, line, endpoint, queueURL string) int {
	t.Helper()
	sent := 0
	for i, r := range references {
		t.Run(r.file, func(t *testing.T) {
			r.harness = []string{"producer.py", "producer.mjs"}[i]
			folder, err := filepath.Abs(r.folder)
			require.NoError(t, err)
			c := r.command(t, "testdata")
			c.Env = append(c.Env, "KFM_REFERENCE="+folder, "AWS_ENDPOINT_URL_SQS="+endpoint, "SQSFIFO_QUEUE_URL="+queueURL)
			c.Stdin = strings.NewReader(line + "\n")
			out, err := c.CombinedOutput()
			require.NoError(t, err, string(out))
			require.Equal(t, "sent\n", string(out))
			sent++
		})
	}
	return sent
}
