package message

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Observation has the types that encoders treat differently: maps, floats, escaped text,
// nested values.
type Observation struct {
	ID      string             `json:"id"`
	At      time.Time          `json:"at"`
	Bands   map[string]float64 `json:"bands"`
	Tags    map[int]string     `json:"tags"`
	Comment string             `json:"comment"`
	Next    *Observation       `json:"next,omitempty"`
}

func observation() Observation {
	o := Observation{
		ID: "obs/1", At: time.Date(1972, 9, 8, 15, 7, 33, 120_000_000, time.FixedZone("", 3600)),
		Bands: map[string]float64{}, Tags: map[int]string{}, Comment: "<caf\u00e9> & \u2028 \U0001f600 \x7f \\ \" \u0001",
	}
	for i := range 40 {
		o.Bands[fmt.Sprint([]string{"B", "\u20ac", "\U0001f600", "\ufb33"}[i%4], i)] = float64(i) / 3 * 1e-7
		o.Tags[i*37%41] = strings.Repeat("x", i)
	}
	next := o
	o.Next = &next
	return o
}

const childEnv = "SQSFIFO_TEST_PRINT_BODY_AFTER"

// TestPrintBodyForTheParentProcess is the child process of TestSameBodyInEveryProcess: it
// waits in virtual time, builds the body and prints it.
func TestPrintBodyForTheParentProcess(t *testing.T) {
	wait, err := time.ParseDuration(os.Getenv(childEnv))
	if err != nil {
		t.Skip("runs as a child of TestSameBodyInEveryProcess")
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(wait)
		fmt.Printf("\nBODY %s %s\n", time.Now().UTC().Format(time.DateOnly), buildObservation(t))
	})
}

func buildObservation(t *testing.T) string {
	t.Helper()
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	p, err := sqsfifo.NewProducer(q, sqsfifo.Config[Observation]{
		QueueURL: q.URL(), Source: "kfm.hydrology.gauge-refresh",
		Identify: func(o Observation) (sqsfifo.Identity, error) {
			key, err := sqsfifo.JoinKey("obs", o.ID)
			return sqsfifo.Identity{DedupeKey: key, Group: "g", Time: o.At}, err
		},
	})
	require.NoError(t, err)
	msg, err := p.Build(observation())
	require.NoError(t, err)
	return msg.Body
}

// Only the event determines the body. Two child processes on different days, with one and
// two processors, build the same bytes as this process.
func TestSameBodyInEveryProcess(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	want := buildObservation(t)
	var days []string
	for _, wait := range []string{"0s", "49h"} {
		for _, procs := range []string{"1", "2"} {
			cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestPrintBodyForTheParentProcess$")
			cmd.Env = append(os.Environ(), childEnv+"="+wait, "GOMAXPROCS="+procs, "TZ=America/Chicago")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			var day, body string
			for line := range strings.Lines(string(out)) {
				if rest, ok := strings.CutPrefix(line, "BODY "); ok {
					day, body, _ = strings.Cut(strings.TrimSpace(rest), " ")
				}
			}
			assert.Equal(t, want, body, "after %s with GOMAXPROCS=%s", wait, procs)
			days = append(days, day)
		}
	}
	slices.Sort(days)
	assert.Len(t, slices.Compact(days), 2, "the children ran on two days")
}
