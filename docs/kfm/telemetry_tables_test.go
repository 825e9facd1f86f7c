package kfm

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// required are the metrics of section 9 of the contract.
var required = []string{
	"sqs_fifo.dedupe.collisions_detected", "sqs_fifo.producer.violations", "sqs_fifo.body_hash.length_bytes", "sqs_fifo.dedupe_window_hits",
}

// telemetry is what a producer emitted in a run with one event of each fate that a
// fake queue can bring about.
type telemetry struct {
	instruments map[string]metric.Instrument
	attributes  map[string][]string // by instrument
	spans       []sdktrace.ReadOnlySpan
}

// run is the one run that all tables are made from.
var run struct {
	once sync.Once
	telemetry
}

func observe(t *testing.T) telemetry {
	t.Helper()
	run.once.Do(func() { run.telemetry = produce(t) })
	return run.telemetry
}

// produce sends events to a fake queue, some of which fail.
func produce(t *testing.T) telemetry {
	t.Helper()
	o := telemetry{instruments: map[string]metric.Instrument{}, attributes: map[string][]string{}}
	reader, spans := metric.NewManualReader(), tracetest.NewSpanRecorder()
	// A view sees each instrument when it is made, also one that nothing is
	// recorded with.
	seen := func(i metric.Instrument) (metric.Stream, bool) {
		o.instruments[i.Name] = i
		return metric.Stream{}, false
	}
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		meters := metric.NewMeterProvider(metric.WithReader(reader), metric.WithView(seen))
		dataset := sqsfifo.Dataset{
			ID: "landsat-c2l2", Version: "v2.0.1", SourceURI: "s3://usgs-landsat/collection02/scene.json",
			ArtifactChecksum: "sha256:88bedf22ee", CARELabel: "CARE-Compliant",
		}
		p := producer(t, q, q, func(c *sqsfifo.Config[scene]) {
			c.Delivery.OnGroupFailure = sqsfifo.SkipEvent
			c.Telemetry.MeterProvider = meters
			c.Telemetry.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
			c.Telemetry.Provenance = func(sqsfifo.ProvenanceRecord) error { return context.Canceled }
			c.Identify = func(s scene) (sqsfifo.Identity, error) {
				id, err := identify(s)
				id.Dataset = &dataset
				return id, err
			}
			c.Attributes = func(s scene) map[string]string {
				if s.CloudCover == 99 {
					return map[string]string{"unique_key": "landsat-2025-12-04T00:00Z"}
				}
				return nil
			}
		})
		send := func(change func(*scene)) error {
			s := landsat
			change(&s)
			_, err := p.Send(t.Context(), s)
			return err
		}
		require.NoError(t, send(func(*scene) {}))
		require.NoError(t, send(func(*scene) {}), "a duplicate")
		require.Error(t, send(func(s *scene) { s.CloudCover = 5 }), "a collision")
		require.Error(t, send(func(s *scene) { s.ID, s.CloudCover = "another", 99 }), "a violation")
		q.Inject(sqstest.Throttle(), 1)
		require.NoError(t, send(func(s *scene) { s.ID = "throttled once" }))
		q.Inject(sqstest.LoseAnswer(), 1000)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		lost := landsat
		lost.ID = "no answer"
		_, err := p.Send(ctx, lost)
		require.Error(t, err)
		q.ClearFaults()
		two := []scene{landsat, landsat}
		two[0].ID, two[1].ID, two[1].Tile = "first of two", "second of two", "047028"
		require.NoError(t, p.SendBatch(t.Context(), two).Err())

		remembers := producer(t, q, q, func(c *sqsfifo.Config[scene]) {
			c.Source = "kfm.remote-sensing.landsat-archive"
			c.Store.Store = new(idempotency.Memory)
			c.Telemetry.MeterProvider = meters
		})
		_, err = remembers.Send(t.Context(), landsat)
		require.NoError(t, err)

		var rm metricdata.ResourceMetrics
		synctest.Wait()
		require.NoError(t, reader.Collect(t.Context(), &rm))
		for _, sm := range rm.ScopeMetrics {
			for _, m := range sm.Metrics {
				o.attributes[m.Name] = attributeKeys(t, m.Data)
			}
		}
		require.NoError(t, remembers.Close(t.Context()))
		_ = p.Close(t.Context()) // reports the records that the sink refused
		require.NoError(t, reader.Collect(t.Context(), &rm))
		for _, sm := range rm.ScopeMetrics {
			for _, m := range sm.Metrics {
				if o.attributes[m.Name] == nil {
					o.attributes[m.Name] = attributeKeys(t, m.Data)
				}
			}
		}
	})
	o.spans = spans.Ended()
	return o
}

// attributeKeys returns the keys of all points, sorted.
func attributeKeys(t *testing.T, data metricdata.Aggregation) []string {
	t.Helper()
	keys := map[string]bool{}
	add := func(set attribute.Set) {
		for _, kv := range set.ToSlice() {
			keys[string(kv.Key)] = true
		}
	}
	switch data := data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Sum[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Histogram[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	default:
		require.Fail(t, "unknown aggregation", "%T", data)
	}
	return slices.Sorted(maps.Keys(keys))
}

// instrumentsTable lists the instruments of a producer: "required" those that the
// contract names, "other" the rest.
func instrumentsTable(t *testing.T, args []string) string {
	o := observe(t)
	for _, name := range required {
		require.Contains(t, o.instruments, name, "the contract requires it")
	}
	names := required
	if slices.Equal(args, []string{"other"}) {
		names = slices.DeleteFunc(slices.Sorted(maps.Keys(o.instruments)), func(name string) bool { return slices.Contains(required, name) })
	} else {
		require.Equal(t, []string{"required"}, args)
	}
	rows := [][]string{{"metric", "instrument", "unit", "attributes", "meaning"}}
	for _, name := range names {
		i := o.instruments[name]
		rows = append(rows, []string{code(name), words(i.Kind.String()), code(i.Unit), quoted(o.attributes[name]), i.Description})
	}
	return table(rows...)
}

// words writes ObservableUpDownCounter as "observable up down counter".
func words(name string) string {
	var b strings.Builder
	for i, c := range name {
		if i > 0 && c >= 'A' && c <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteString(strings.ToLower(string(c)))
	}
	return b.String()
}

func quoted(keys []string) string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = code(k)
	}
	return strings.Join(out, ", ")
}

// spansTable lists the spans of a producer, their attributes and events.
func spansTable(t *testing.T, _ []string) string {
	type row struct {
		kind, events string
		keys         map[string]bool
	}
	spans := map[string]*row{}
	for _, s := range observe(t).spans {
		operation, _, _ := strings.Cut(s.Name(), " ")
		r := spans[operation]
		if r == nil {
			r = &row{kind: s.SpanKind().String(), keys: map[string]bool{}}
			spans[operation] = r
		}
		for _, kv := range s.Attributes() {
			r.keys[string(kv.Key)] = true
		}
		for _, e := range s.Events() {
			r.events = code(e.Name)
			for _, kv := range e.Attributes {
				r.events += " with " + code(string(kv.Key))
			}
		}
	}
	rows := [][]string{{"span", "kind", "attributes", "events"}}
	for _, name := range slices.Sorted(maps.Keys(spans)) {
		r := spans[name]
		rows = append(rows, []string{code(name + " <queue>"), r.kind, quoted(slices.Sorted(maps.Keys(r.keys))), r.events})
	}
	return table(rows...)
}

// TestTelemetryOfTheKeySpecification looks for what the key specification v10.3.1
// wants in telemetry: in the spans of events and in provenance records.
func TestTelemetryOfTheKeySpecification(t *testing.T) {
	keys := map[string]bool{}
	for _, s := range observe(t).spans {
		if strings.HasPrefix(s.Name(), "create ") {
			for _, kv := range s.Attributes() {
				keys[string(kv.Key)] = true
			}
		}
	}
	fields := fieldsTable(t, nil)
	for _, name := range []string{"idempotency_key", "duplicate_detected", "replay_triggered", "artifact_checksum", "care_label", "dataset_id", "version"} {
		assert.True(t, keys[name], "no span of an event has %s", name)
		assert.Contains(t, fields, code(name))
	}
}

// meanings are what the fields of a provenance record hold, by their JSON names.
var meanings = map[string]string{
	"time":               "when the outcome was known, RFC 3339 in UTC",
	"outcome":            "what became of the event, see below",
	"error_type":         "the `error.type` of the event's span, unless stored or duplicate",
	"event_id":           "`event_id` of the envelope",
	"dedupe_key":         "`dedupe_key` of the envelope",
	"message_group":      "message group ID",
	"body_hash":          "SHA-256 of the body in lower-case hexadecimal: the deduplication ID",
	"message_id":         "SQS's message ID; of a duplicate, the original's",
	"sequence_number":    "SQS's sequence number; of a duplicate, the original's",
	"attempts":           "number of requests that the event was in",
	"duplicate_detected": "SQS had the event already",
	"replay_triggered":   "this producer had sent the event before, within the deduplication interval",
	"dataset_id":         "of the event's dataset (KFM key specification v10.3.1)",
	"version":            "of the event's dataset, as given; the key has its normal form",
	"idempotency_key":    "`sha256:` and 64 digits, computed from the event's dataset",
	"artifact_checksum":  "of the event's dataset, as given",
	"care_label":         "of the event's dataset, as given",
}

// fieldsTable lists the fields of a provenance record.
func fieldsTable(t *testing.T, _ []string) string {
	rows := [][]string{{"field", "type", "always there", "meaning"}}
	record := reflect.TypeFor[sqsfifo.ProvenanceRecord]()
	names := map[string]bool{}
	for i := range record.NumField() {
		f := record.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		names[name] = true
		assert.NotEmpty(t, meanings[name], "the field %s has no meaning in telemetry_tables_test.go", name)
		kind := map[reflect.Kind]string{reflect.String: "string", reflect.Int: "integer", reflect.Bool: "boolean", reflect.Struct: "string"}[f.Type.Kind()]
		always := "yes"
		if options != "" {
			always = ""
		}
		rows = append(rows, []string{code(name), kind, always, meanings[name]})
	}
	for name := range meanings {
		assert.True(t, names[name], "a record has no field %s", name)
	}
	return table(rows...)
}

// outcomesTable lists the constants of type ProvenanceOutcome and their comments.
func outcomesTable(t *testing.T, _ []string) string {
	file, err := parser.ParseFile(token.NewFileSet(), root+"provenance.go", nil, parser.ParseComments)
	require.NoError(t, err)
	rows := [][]string{{"outcome", "constant", ""}}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != "ProvenanceOutcome" {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		require.NoError(t, err)
		comment := spec.Doc.Text() + spec.Comment.Text()
		rows = append(rows, []string{code(value), fmt.Sprintf("`sqsfifo.%s`", spec.Names[0].Name), strings.TrimSpace(comment)})
		return true
	})
	require.Greater(t, len(rows), 1, "constants of type ProvenanceOutcome in provenance.go")
	return table(rows...)
}
