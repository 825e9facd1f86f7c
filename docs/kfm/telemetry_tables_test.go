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
	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// required lists the metrics of section 9 of the contract.
var required = []string{
	"sqs_fifo.dedupe.collisions_detected", "sqs_fifo.producer.violations", "sqs_fifo.body_hash.length_bytes", "sqs_fifo.dedupe_window_hits",
}

// telemetry has the instruments, attributes and spans of a producer's run over the fake
// queue, with one event for each outcome that the fake queue can cause.
type telemetry struct {
	instruments map[string]metric.Instrument
	attributes  map[string][]string // by instrument
	spans       []sdktrace.ReadOnlySpan
}

// run stores the result of one call of produce. All tests and tables about telemetry use
// this result, so produce runs at most once.
var run struct {
	once sync.Once
	telemetry
}

func observe(t *testing.T) telemetry {
	t.Helper()
	run.once.Do(func() { run.telemetry = produce(t) })
	return run.telemetry
}

// produce sends events to a fake queue; some of them fail.
func produce(t *testing.T) telemetry {
	t.Helper()
	o := telemetry{instruments: map[string]metric.Instrument{}, attributes: map[string][]string{}}
	reader, spans := metric.NewManualReader(), tracetest.NewSpanRecorder()
	// The SDK calls this function for each new instrument, so o.instruments also has
	// instruments without data.
	view := func(i metric.Instrument) (metric.Stream, bool) {
		o.instruments[i.Name] = i
		return metric.Stream{}, false
	}
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		meters := metric.NewMeterProvider(metric.WithReader(reader), metric.WithView(view))
		dataset := sqsfifo.Dataset{
			ID: "landsat-c2l2", Version: "v2.0.1", SourceURI: "s3://usgs-landsat/collection02/scene.json",
			ArtifactChecksum: "sha256:88bedf22ee", CARELabel: "CARE-Compliant",
		}
		collect := func() {
			var rm metricdata.ResourceMetrics
			require.NoError(t, reader.Collect(t.Context(), &rm))
			for _, sm := range rm.ScopeMetrics {
				for _, m := range sm.Metrics {
					keys := append(o.attributes[m.Name], attributeKeys(t, m.Data)...)
					slices.Sort(keys)
					o.attributes[m.Name] = slices.Compact(keys)
				}
			}
		}
		p := producer(t, q.Client(), q, func(c *sqsfifo.Config[scene]) {
			c.Delivery.Memory.MaxKeys = 1000
			c.Delivery.OnGroupFailure = sqsfifo.GroupFailureSkip
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
		collect()
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

		shared, err := sqsfifo.NewQueue(q, sqsfifo.QueueConfig{URL: q.URL(), Telemetry: sqsfifo.Telemetry{MeterProvider: meters}})
		require.NoError(t, err)
		typed, err := sqsfifo.NewProducerOn(shared, sqsfifo.Config[scene]{Source: "kfm.remote-sensing.landsat-tiles", Identify: identify})
		require.NoError(t, err)
		_, err = typed.Send(t.Context(), landsat)
		require.NoError(t, err)
		reads, err := consumer.New(q, consumer.Config[scene]{
			QueueURL: q.URL(), Decode: sqsfifo.DecodeEnvelope[scene], Store: new(idempotency.Memory),
			Failure:   consumer.Failure{Action: consumer.ActionPark, ParkingQueue: strings.Replace(q.URL(), ".fifo", "-parked.fifo", 1)},
			Telemetry: consumer.Telemetry{MeterProvider: meters},
			Handle:    func(context.Context, consumer.Message[scene]) error { return nil },
		})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		running := make(chan error)
		go func() { running <- reads.Run(ctx) }()
		time.Sleep(time.Minute)
		collect()
		stop()
		require.NoError(t, <-running)
		synctest.Wait()
		require.NoError(t, shared.Close(t.Context()))
		require.NoError(t, remembers.Close(t.Context()))
		_ = p.Close(t.Context()) // returns an error, because the sink refused records
		collect()
	})
	o.spans = spans.Ended()
	return o
}

// attributeKeys returns the attribute keys of all data points, sorted.
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

// instrumentsTable lists the metric instruments that the argument selects:
//
//   - "required": the producer's instruments that the contract requires
//   - "other": the producer's other instruments
//   - "consumer": the instruments of a consumer
//   - a folder name: the instruments in the folder's telemetry.go
func instrumentsTable(t *testing.T, args []string) string {
	o := observe(t)
	for _, name := range required {
		require.Contains(t, o.instruments, name, "the contract requires it")
	}
	ofConsumer := func(name string) bool {
		return strings.HasPrefix(name, "sqs_fifo.consumer.") || name == "messaging.process.duration" || name == "messaging.client.consumed.messages"
	}
	all := slices.Sorted(maps.Keys(o.instruments))
	names := required
	switch {
	case slices.Equal(args, []string{"other"}):
		names = slices.DeleteFunc(all, func(name string) bool { return slices.Contains(required, name) || ofConsumer(name) })
	case slices.Equal(args, []string{"consumer"}):
		names = slices.DeleteFunc(all, func(name string) bool { return !ofConsumer(name) })
	case len(args) == 1 && args[0] != "required":
		return createdTable(t, root+args[0]+"/telemetry.go")
	default:
		require.Equal(t, []string{"required"}, args)
	}
	rows := [][]string{{"metric", "instrument", "unit", "attributes", "meaning"}}
	for _, name := range names {
		i := o.instruments[name]
		rows = append(rows, []string{code(name), words(i.Kind.String()), code(i.Unit), quoted(o.attributes[name]), i.Description})
	}
	return table(rows...)
}

// createdTable lists the metric instruments that a source file creates, with names, units
// and descriptions.
func createdTable(t *testing.T, file string) string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	rows := [][]string{{"metric", "instrument", "unit", "attributes", "meaning"}}
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 3 {
			return true
		}
		function, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		kind, ok := strings.CutPrefix(strings.TrimPrefix(function.Sel.Name, "Float64"), "Int64")
		if kind = words(kind); !ok && kind == words(function.Sel.Name) {
			return true
		}
		var texts []string
		for _, arg := range call.Args {
			if option, ok := arg.(*ast.CallExpr); ok {
				arg = option.Args[0]
			}
			text, err := strconv.Unquote(arg.(*ast.BasicLit).Value)
			require.NoError(t, err)
			texts = append(texts, text)
		}
		attributes := ""
		if kind == "counter" {
			attributes = code("sqs_fifo.outcome")
		}
		rows = append(rows, []string{code(texts[0]), kind, code(texts[1]), attributes, texts[2]})
		return true
	})
	require.Greater(t, len(rows), 1, file)
	return table(rows...)
}

// words splits a name into words in lower case. For example, ObservableUpDownCounter
// becomes "observable up down counter".
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

// spansTable lists the spans that a producer creates when it sends events.
func spansTable(t *testing.T, _ []string) string {
	type row struct {
		kind, events string
		keys, links  map[string]bool
	}
	spans := map[string]*row{}
	for _, s := range observe(t).spans {
		operation, _, _ := strings.Cut(s.Name(), " ")
		r := spans[operation]
		if r == nil {
			r = &row{kind: s.SpanKind().String(), keys: map[string]bool{}, links: map[string]bool{}}
			spans[operation] = r
		}
		for _, kv := range s.Attributes() {
			r.keys[string(kv.Key)] = true
		}
		for _, l := range s.Links() {
			for _, kv := range l.Attributes {
				r.links[string(kv.Key)] = true
			}
		}
		for _, e := range s.Events() {
			r.events = code(e.Name)
			for _, kv := range e.Attributes {
				r.events += " with " + code(string(kv.Key))
			}
		}
	}
	rows := [][]string{{"span", "kind", "attributes", "attributes of links", "events"}}
	for _, name := range slices.Sorted(maps.Keys(spans)) {
		r := spans[name]
		rows = append(rows, []string{code(name + " <queue>"), r.kind, quoted(slices.Sorted(maps.Keys(r.keys))), quoted(slices.Sorted(maps.Keys(r.links))), r.events})
	}
	return table(rows...)
}

// TestTelemetryOfTheKeySpecification checks that the spans of events and the provenance
// records have all fields that the KFM key specification v10.3.1 requires.
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

// meanings describes the fields of a provenance record by JSON name.
var meanings = map[string]string{
	"time":               "when the outcome was known, RFC 3339 in UTC",
	"outcome":            "what became of the event, see below",
	"error_type":         "the `error.type` of the event's span, unless stored or duplicate",
	"event_id":           "`event_id` of the envelope",
	"event_source":       "`event_source` of the envelope",
	"dedupe_key":         "`dedupe_key` of the envelope",
	"message_group":      "message group ID",
	"body_hash":          "SHA-256 of the body in lower-case hexadecimal: the deduplication ID",
	"message_id":         "SQS's message ID; of a duplicate, the original's",
	"sequence_number":    "SQS's sequence number; of a duplicate, the original's",
	"attempts":           "number of requests that the event was in",
	"duplicate_detected": "SQS, or the store of `Config.Store`, had the event already",
	"replay_triggered":   "this producer had sent the event within the deduplication interval, or another producer with its store within the TTL, or the message comes from a replay",
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
