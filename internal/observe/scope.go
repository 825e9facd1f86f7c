package observe

import (
	"reflect"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Scope is the instrumentation scope of all library telemetry.
const Scope = "github.com/kansas-frontier-matrix/sqsfifo"

// scope has the meter and the tracer of [Scope].
type scope struct {
	provider metric.MeterProvider
	meter    metric.Meter
	tracer   trace.Tracer
	silent   bool // the tracer comes from the no-op provider, which never records spans
	// placeholder is the provider that OpenTelemetry returns before the program has set a
	// real one. It is nil if newScope already had a real provider.
	placeholder trace.TracerProvider
	propagator  propagation.TextMapPropagator
}

// newScope returns the scope of an Observer or a Consumer. For a nil provider or
// propagator, it uses OpenTelemetry's global one.
func newScope(meter metric.MeterProvider, tracer trace.TracerProvider, propagator propagation.TextMapPropagator, version string) scope {
	s := scope{provider: meter, propagator: propagator}
	if s.provider == nil {
		s.provider = otel.GetMeterProvider()
	}
	if tracer == nil {
		tracer = otel.GetTracerProvider()
		if isPlaceholder(tracer) {
			s.placeholder = tracer
		}
	}
	if s.propagator == nil {
		s.propagator = otel.GetTextMapPropagator()
	}
	_, s.silent = tracer.(noop.TracerProvider)
	s.tracer = tracer.Tracer(Scope, trace.WithInstrumentationVersion(version), trace.WithSchemaURL(semconv.SchemaURL))
	s.meter = s.provider.Meter(Scope, metric.WithInstrumentationVersion(version), metric.WithSchemaURL(semconv.SchemaURL))
	return s
}

// isPlaceholder reports whether p is the placeholder that OpenTelemetry returns until the
// program sets a global provider. Spans of the placeholder are not recorded, but cost time
// and memory.
func isPlaceholder(p trace.TracerProvider) bool {
	t := reflect.TypeOf(p)
	return t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "go.opentelemetry.io/otel/internal/global"
}

func (s *scope) isSilent() bool {
	return s.silent || s.placeholder != nil && otel.GetTracerProvider() == s.placeholder
}
