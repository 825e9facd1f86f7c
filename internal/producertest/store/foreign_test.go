package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// saboteur counts the calls of foreign code: telemetry, client and store. One of the calls
// does not return.
type saboteur struct {
	act       func() // ends the goroutine, or panics
	inCallers bool   // count only the calls in the goroutine of a caller of the producer

	mu    sync.Mutex
	calls int
	at    int    // number of the call that does not return
	where string // its name
}

func (s *saboteur) called(name string) {
	if s.inCallers {
		stack := make([]byte, 1<<14)
		if stack = stack[:runtime.Stack(stack, false)]; !strings.Contains(string(stack), "(*saboteur).step") {
			return
		}
	}
	s.mu.Lock()
	s.calls++
	now := s.calls == s.at
	if now {
		s.where = name
	}
	s.mu.Unlock()
	if now {
		s.act()
	}
}

// step calls f in a new goroutine, and waits until the goroutine has ended.
func (s *saboteur) step(t *testing.T, name string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		f()
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Minute):
		t.Errorf("%s does not return, after call %d: %s", name, s.at, s.where)
	}
}

func (s *saboteur) OnStart(_ context.Context, span sdktrace.ReadWriteSpan) {
	s.called("start of the span " + span.Name())
}

func (s *saboteur) OnEnd(span sdktrace.ReadOnlySpan)       { s.called("end of the span " + span.Name()) }
func (*saboteur) Shutdown(context.Context) error           { return nil }
func (*saboteur) ForceFlush(context.Context) error         { return nil }
func (*saboteur) Description() string                      { return "" }
func (*saboteur) Fields() []string                         { return nil }
func (*saboteur) Enabled(context.Context, slog.Level) bool { return true }
func (s *saboteur) WithAttrs([]slog.Attr) slog.Handler     { return s }
func (s *saboteur) WithGroup(string) slog.Handler          { return s }

func (s *saboteur) Handle(context.Context, slog.Record) error {
	s.called("logger")
	return nil
}

func (s *saboteur) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	s.called("sampler of the span " + p.Name)
	return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
}

func (s *saboteur) Inject(context.Context, propagation.TextMapCarrier) { s.called("propagator") }

func (s *saboteur) Extract(ctx context.Context, _ propagation.TextMapCarrier) context.Context {
	return ctx
}

func (s *saboteur) Middleware(stack *middleware.Stack) error {
	return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("saboteur", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
		s.called("middleware before the request")
		out, metadata, err := next.HandleFinalize(ctx, in)
		s.called("middleware after the request")
		return out, metadata, err
	}), middleware.After)
}

type sabotagedMeters struct {
	noop.MeterProvider
	s *saboteur
}

func (m sabotagedMeters) Meter(string, ...metric.MeterOption) metric.Meter {
	return sabotagedMeter{s: m.s}
}

type sabotagedMeter struct {
	noop.Meter
	s *saboteur
}

func (m sabotagedMeter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return sabotagedInstrument{s: m.s, name: name}, nil
}

type sabotagedInstrument struct {
	noop.Int64Counter
	s    *saboteur
	name string
}

func (i sabotagedInstrument) Enabled(context.Context) bool { return true }

func (i sabotagedInstrument) Add(context.Context, int64, ...metric.AddOption) { i.s.called(i.name) }

// Any call of foreign code may end its goroutine (runtime.Goexit), or panic in the
// goroutine of the producer's caller. Each event still gets its outcome, no
// outcome is wrong, and an hour later the same events can be sent.
func TestForeignCodeThatDoesNotReturn(t *testing.T) {
	for _, withStores := range []bool{false, true} {
		for _, inCallers := range []bool{false, true} {
			for at, last := 1, false; !last; at++ {
				s := &saboteur{act: runtime.Goexit, inCallers: inCallers, at: at}
				if inCallers {
					s.act = func() { panic("the saboteur") }
				}
				synctest.Test(t, func(t *testing.T) { sabotage(t, s, withStores) })
				last = s.where == ""
				if t.Failed() {
					t.Fatalf("call %d, %s; store: %t, panic: %t", at, s.where, withStores, inCallers)
				}
			}
		}
	}
}

func sabotage(t *testing.T, s *saboteur, withStores bool) {
	q := producertest.NewQueue(t, sqstest.Config{})
	client := q.Client(func(o *sqs.Options) { o.APIOptions = append(o.APIOptions, s.Middleware) })
	p := producertest.On(t, client, q, func(c *sqsfifo.Config[producertest.Scene]) {
		c.Enforcement = sqsfifo.EnforcementWarn
		c.Delivery.OnGroupFailure = sqsfifo.GroupFailureSkip
		c.Telemetry = sqsfifo.Telemetry{
			TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s), sdktrace.WithSampler(s)),
			MeterProvider:  sabotagedMeters{s: s},
			Propagator:     s,
			Logger:         slog.New(s),
			Provenance:     func(sqsfifo.ProvenanceRecord) error { s.called("provenance"); return nil },
		}
		if withStores {
			store := &testStore{Store: new(idempotency.Memory)}
			store.fail(func(call string) error { s.called("before the store's " + call); return nil },
				func(call string) error { s.called("after the store's " + call); return nil })
			c.Store.Store, c.Store.Unresolved = store, sqsfifo.UnresolvedResend
		}
	})
	other := producertest.Sample
	other.Cloud++ // another payload with the same dedupe key
	events := []producertest.Scene{producertest.Sample, producertest.Event("a", 0), producertest.Event("a", 1), producertest.Event("b", 0)}
	send := func(name string, e producertest.Scene) (err error) {
		err = errors.New("ended")
		s.step(t, name, func() {
			before := len(q.Messages())
			switch _, err = p.Send(t.Context(), e); sqsfifo.FateOf(err) {
			case sqsfifo.FateNotStored:
				assert.Len(t, q.Messages(), before, "%s: %v", name, err)
			case sqsfifo.FateStored:
				assert.NotEmpty(t, q.Messages())
			}
		})
		return err
	}
	_ = send("first send", producertest.Sample)
	_ = send("duplicate", producertest.Sample)
	_ = send("collision", other)
	s.step(t, "batch", func() { p.SendBatch(t.Context(), events) })
	time.Sleep(time.Hour)
	s.mu.Lock()
	s.at = 0 // from now on, every call returns
	s.mu.Unlock()
	for i, e := range append(events, other) {
		require.NoError(t, send(fmt.Sprint("resend ", i), e), "after %s", s.where)
	}
	s.step(t, "close", func() {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		assert.NotErrorIs(t, p.Close(ctx), context.DeadlineExceeded)
	})
}
