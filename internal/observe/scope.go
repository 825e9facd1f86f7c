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
	// unset is OpenTelemetry's placeholder for a global provider that the program has not
	// set yet. No span is recorded while otel.GetTracerProvider returns this placeholder.
	// unset is nil if the tracer came from another provider.
	unset      trace.TracerProvider
	propagator propagation.TextMapPropagator
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
		if isUnset(tracer) {
			s.unset = tracer
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

// isUnset reports whether p is the placeholder that OpenTelemetry returns until the
// program sets a global provider. Placeholder spans are not recorded, but cost time and
// memory.
func isUnset(p trace.TracerProvider) bool {
	t := reflect.TypeOf(p)
	return t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "go.opentelemetry.io/otel/internal/global"
}

func (s *scope) isSilent() bool {
	return s.silent || s.unset != nil && otel.GetTracerProvider() == s.unset
}
