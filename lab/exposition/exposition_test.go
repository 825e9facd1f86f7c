// Package exposition compares the metrics of producers with golden files, in the text
// format that a Prometheus server reads.
package exposition

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

var update = flag.Bool("update", false, "write the golden files")

type scene struct {
	ID    string `json:"id"`
	Cloud int    `json:"cloud"`
}

// world is a queue, and the registry that a Prometheus server would scrape.
type world struct {
	*testing.T
	queue    *sqstest.Queue
	registry *prometheus.Registry
	meters   *metric.MeterProvider
}

func newWorld(t *testing.T) world {
	t.Helper()
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	w := world{t, q, prometheus.NewRegistry(), nil}
	reader, err := exporter.New(exporter.WithRegisterer(w.registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	require.NoError(t, err)
	w.meters = metric.NewMeterProvider(metric.WithReader(reader))
	return w
}

func (w world) producer(change ...func(*sqsfifo.Config[scene])) *sqsfifo.Producer[scene] {
	w.Helper()
	c := sqsfifo.Config[scene]{
		QueueURL: w.queue.URL(), Source: "kfm.remote-sensing.landsat-refresh",
		Identify: func(s scene) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{DedupeKey: "scene|" + s.ID, Group: s.ID, Time: time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC)}, nil
		},
		Telemetry: sqsfifo.Telemetry{MeterProvider: w.meters},
	}
	for _, f := range change {
		f(&c)
	}
	p, err := sqsfifo.NewProducer(w.queue, c)
	require.NoError(w, err)
	return p
}

func (w world) send(p *sqsfifo.Producer[scene], id string, cloud int) error {
	_, err := p.Send(w.Context(), scene{id, cloud})
	return err
}

var scopeLabels = regexp.MustCompile(`,?otel_scope_[a-z_]+="[^"]*"`)

// scrape returns the metrics in Prometheus's text format.
func (w world) scrape() string {
	w.Helper()
	families, err := w.registry.Gather()
	require.NoError(w, err)
	var b bytes.Buffer
	for _, f := range families {
		_, err := expfmt.MetricFamilyToText(&b, f)
		require.NoError(w, err)
	}
	return scopeLabels.ReplaceAllString(b.String(), "")
}

// golden compares the text with a golden file. The text must not have values that depend
// on this machine's speed. Histograms in seconds have such values, except in a synctest
// bubble.
func (w world) golden(name, text string) {
	w.Helper()
	file := "testdata/" + name + ".txt"
	if *update {
		require.NoError(w, os.MkdirAll("testdata", 0o755))
		require.NoError(w, os.WriteFile(file, []byte(text), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(w, err)
	assert.Equal(w, string(want), text, "run: go test ./exposition -update")
}

// series returns the value of each series in the text.
func series(t *testing.T, text string) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(line[at+1:], 64)
		require.NoError(t, err)
		out[line[:at]] = value
	}
	return out
}

var cumulative = regexp.MustCompile(`_(total|count|sum|bucket)(\{|$)`)

// neverFalls checks that no cumulative series falls: each series of an earlier scrape
// exists in the later scrape, with at least the earlier value.
func neverFalls(t *testing.T, before, after string) {
	t.Helper()
	now := series(t, after)
	checked := 0
	for name, was := range series(t, before) {
		if !cumulative.MatchString(name) {
			continue
		}
		checked++
		is, ok := now[name]
		assert.True(t, ok, "%s is missing", name)
		assert.GreaterOrEqual(t, is, was, name)
	}
	assert.Greater(t, checked, 20)
}

func withStore(c *sqsfifo.Config[scene]) { c.Store.Store = new(idempotency.Memory) }

// The metrics of a new producer contain each counter, with the value 0.
func TestFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.producer(withStore)
		text := w.scrape()
		w.golden("fresh", text)
		for name, value := range series(t, text) {
			if cumulative.MatchString(name) {
				assert.Zero(t, value, name)
			}
		}
		for _, name := range []string{"collisions_detected", "window_hits", "store_hits", "violations", "outcomes", "retries", "throttles", "pauses", "provenance_dropped", "store_errors", "store_lost"} {
			assert.Contains(t, text, name+"_total{")
		}
		require.NoError(t, p.Close(context.Background()))
	})
}

// Each kind of fault appears in the producer's metrics.
func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.producer(func(c *sqsfifo.Config[scene]) {
			c.Telemetry.Provenance = func(sqsfifo.ProvenanceRecord) error { return context.Canceled }
		})
		require.NoError(t, w.send(p, "a", 1))
		require.NoError(t, w.send(p, "a", 1), "a duplicate")
		require.Error(t, w.send(p, "a", 2), "a conflict")
		require.Error(t, w.send(p, "", 1), "a violation")
		w.queue.Inject(sqstest.Throttle(), 2)
		require.NoError(t, w.send(p, "b", 1))
		before := w.scrape()
		w.queue.Inject(sqstest.LoseAnswer(), 1_000_000)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := p.Send(ctx, scene{"c", 1})
		require.Error(t, err, "in doubt")
		w.queue.ClearFaults()
		synctest.Wait()
		text := w.scrape()
		neverFalls(t, before, text)
		// The waits between attempts are random, so the number and times of the attempts
		// differ from run to run.
		w.golden("faults", regexp.MustCompile(`(?m)^([^#].*(_duration_seconds|_age_seconds|retries|sent_messages|rate_limit|request_active|event_pending|buffer_usage).*) \S+$`).ReplaceAllString(text, "$1 *"))
		for _, want := range []struct {
			name, label string
			value       float64
		}{
			{"sqs_fifo_dedupe_collisions_detected_total", `sqs_fifo_collision_kind="conflict"`, 1},
			{"sqs_fifo_dedupe_window_hits_total", `sqs_fifo_replay="true"`, 1},
			{"sqs_fifo_producer_outcomes_total", `sqs_fifo_outcome="in_doubt"`, 1},
			{"sqs_fifo_producer_outcomes_total", `error_type="conflict"`, 1},
			{"sqs_fifo_producer_throttles_total", "", 2},
			{"sqs_fifo_producer_pauses_total", "", 1},
			{"sqs_fifo_producer_group_paused", "", 1},
			{"sqs_fifo_provenance_dropped_total", "", 6},
		} {
			sum := 0.0
			for name, value := range series(t, text) {
				if strings.HasPrefix(name, want.name+"{") && strings.Contains(name, want.label) {
					sum += value
				}
			}
			assert.InDelta(t, want.value, sum, 0, want.name)
		}
		_ = p.Close(context.Background())
	})
}

// Two producers of one queue share their metrics. The metric for the age of the oldest event
// has the larger of the two producers' ages. No counter falls when one producer is closed.
func TestTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first, second := w.producer(), w.producer()
		for i, p := range []*sqsfifo.Producer[scene]{first, second} {
			for n := range 3 {
				require.NoError(t, w.send(p, fmt.Sprintf("%d-%d", i, n), 1))
			}
		}
		w.queue.Inject(sqstest.DropRequest(), 1_000_000)
		first.SendAsync(t.Context(), scene{"old", 1}, func(sqsfifo.Receipt, error) {})
		time.Sleep(30 * time.Second)
		second.SendAsync(t.Context(), scene{"young", 1}, func(sqsfifo.Receipt, error) {})
		time.Sleep(5 * time.Second)
		before := w.scrape()
		const age = `sqs_fifo_producer_oldest_event_age_seconds{messaging_destination_name="events.fifo"}`
		assert.InDelta(t, 35, series(t, before)[age], 0.001)
		w.queue.ClearFaults()
		require.NoError(t, first.Close(context.Background()))
		require.NoError(t, second.Flush(t.Context()))
		after := w.scrape()
		neverFalls(t, before, after)
		stored := 0.0
		for name, value := range series(t, after) {
			if strings.HasPrefix(name, "sqs_fifo_producer_outcomes_total{") && strings.Contains(name, `outcome="stored"`) {
				stored += value
			}
		}
		assert.InDelta(t, 8, stored, 0)
		require.NoError(t, second.Close(context.Background()))
		last := w.scrape()
		neverFalls(t, after, last)
		w.golden("closed", regexp.MustCompile(`(?m)^([^#].*(_duration_seconds|retries|sent_messages).*) \S+$`).ReplaceAllString(last, "$1 *"))
	})
}

// The command "promtool check metrics" accepts the output. It warns about some metric
// names, which the contract (docs/kfm/telemetry/dedup-metrics.md) prescribes.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian: apt-get install prometheus)")
	}
	for _, name := range []string{"fresh", "closed"} {
		text, err := os.ReadFile("testdata/" + name + ".txt")
		require.NoError(t, err)
		check := exec.Command(promtool, "check", "metrics")
		check.Stdin = strings.NewReader(strings.ReplaceAll(string(text), " *\n", " 1\n"))
		out, err := check.CombinedOutput()
		assert.NotContains(t, string(out), "error while linting", name)
		t.Log(name, err, string(out))
	}
}
