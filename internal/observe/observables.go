package observe

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// observables creates the instruments for the numbers of a snapshot. Their names start
// with prefix.
type observables struct {
	meter  metric.Meter
	prefix string
	all    []metric.Observable
	errs   []error
}

// current returns an instrument for an amount that rises and falls, such as the number of
// events in the buffer.
func (s *observables) current(name, unit, text string) metric.Int64ObservableUpDownCounter {
	i, err := s.meter.Int64ObservableUpDownCounter(s.prefix+name, metric.WithUnit(unit), metric.WithDescription(text))
	s.add(i, err)
	return i
}

// count returns a counter for a total that never decreases, for example the number of
// retries since the producer's start. Use the type `tally` to add the increases of the total
// to the counter.
func (s *observables) count(name, unit, text string) metric.Int64Counter {
	i, err := s.meter.Int64Counter(s.prefix+name, metric.WithUnit(unit), metric.WithDescription(text))
	s.errs = append(s.errs, err)
	return i
}

func (s *observables) gauge(name, unit, text string) metric.Float64ObservableGauge {
	i, err := s.meter.Float64ObservableGauge(s.prefix+name, metric.WithUnit(unit), metric.WithDescription(text))
	s.add(i, err)
	return i
}

func (s *observables) add(i metric.Observable, err error) {
	s.all, s.errs = append(s.all, i), append(s.errs, err)
}

// register makes metric readers call the function `observe` until the caller calls the
// function `unregister`.
func (s *observables) register(observe func(o metric.Observer)) (unregister func(), _ error) {
	if err := errors.Join(s.errs...); err != nil {
		return nil, err
	}
	registration, err := s.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		observe(o)
		return nil
	}, s.all...)
	unregister = func() {
		if registration == nil {
			return
		}
		if err := registration.Unregister(); err != nil {
			otel.Handle(err)
		}
	}
	if err != nil { // the SDK may have registered the callback with some of the readers
		unregister()
		return nil, err
	}
	return unregister, nil
}
