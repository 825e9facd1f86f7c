package observe

import (
	"context"
	"reflect"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// sharing has one metric callback for all producers, or all consumers, with the same
// queue and meter provider. With separate callbacks, their values would overwrite each
// other.
type sharing[S any] struct {
	merge func(S, S) S

	mu     sync.Mutex
	groups map[groupKey]*group[S]
}

type groupKey struct {
	provider metric.MeterProvider
	queue    attribute.KeyValue
}

// group has the producers, or the consumers, with the same queue and meter provider.
type group[S any] struct {
	users int // guarded by sharing.mu

	callbackMu sync.Mutex // guards unregister; held during calls of OpenTelemetry's SDK
	unregister func()     // nil without a callback

	mu      sync.Mutex // guards members; held during calls of snapshot functions
	members []*member[S]
}

// member is a producer or consumer. snapshot returns its current amounts and its totals
// since its start. count adds the increases of these totals to OpenTelemetry's counters.
type member[S any] struct {
	snapshot func() S
	count    func(S)
}

// join adds the member m to the group of its queue and meter provider, and registers the
// group's metric callback if there is none yet. The caller calls the function `leave` when
// the member closes.
func (s *sharing[S]) join(key groupKey, m *member[S], register func(read func() S) (unregister func(), err error)) (leave func(), err error) {
	g := s.enter(key)
	out := sync.OnceFunc(func() {
		g.remove(m)
		s.leave(key, g)
	})
	g.add(m)
	g.callbackMu.Lock()
	if g.unregister == nil {
		g.unregister, err = register(func() S { return g.read(s.merge) })
	}
	g.callbackMu.Unlock()
	if err != nil {
		out()
		return nil, err
	}
	return func() {
		out()
		m.count(m.snapshot())
	}, nil
}

// enter returns the group of the key and adds 1 to group.users. A meter provider of a type
// that is not comparable cannot be in a map key; for such a provider, each call returns a
// new group.
func (s *sharing[S]) enter(key groupKey) *group[S] {
	if !reflect.ValueOf(key.provider).Comparable() {
		return &group[S]{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[key]
	if g == nil {
		g = &group[S]{}
		if s.groups == nil {
			s.groups = map[groupKey]*group[S]{}
		}
		s.groups[key] = g
	}
	g.users++
	return g
}

func (s *sharing[S]) leave(key groupKey, g *group[S]) {
	if !reflect.ValueOf(key.provider).Comparable() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.users--; g.users == 0 {
		delete(s.groups, key)
	}
}

func (g *group[S]) add(m *member[S]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members = append(g.members, m)
}

// remove removes a member. Removing the last member unregisters the callback.
func (g *group[S]) remove(m *member[S]) {
	g.callbackMu.Lock()
	defer g.callbackMu.Unlock()
	g.mu.Lock()
	g.members = slices.DeleteFunc(g.members, func(o *member[S]) bool { return o == m })
	last := len(g.members) == 0
	g.mu.Unlock()
	if last && g.unregister != nil {
		g.unregister()
		g.unregister = nil
	}
}

// read returns the combined snapshot of all members. It also updates each member's
// counters.
func (g *group[S]) read(merge func(S, S) S) (all S) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, m := range g.members {
		s := m.snapshot()
		m.count(s)
		if i == 0 {
			all = s
		} else {
			all = merge(all, s)
		}
	}
	return all
}

// tally adds the increases of running totals to synchronous counters. The first call also
// adds zeros, so that each series exists before its first event. A tally is safe for
// concurrent use.
type tally struct {
	mu     sync.Mutex
	last   []int64 // values at the last call of add; nil before the first
	series []series
}

// series is a counter with a set of attributes.
type series struct {
	counter metric.Int64Counter
	options []metric.AddOption
}

// add updates the counter of each series. It gets the current totals, and adds each
// total's increase since the last call of add.
func (t *tally) add(totals ...int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.last == nil
	if first {
		t.last = make([]int64, len(t.series))
	}
	ctx := context.Background()
	for i, s := range t.series {
		if grown := totals[i] - t.last[i]; (grown > 0 || first) && s.counter.Enabled(ctx) {
			s.counter.Add(ctx, grown, s.options...)
		}
		t.last[i] = max(t.last[i], totals[i])
	}
}

// addWith returns the options of a counter measurement with the given attributes. For a
// frequent measurement, callers build this slice once, so that the measurement does not
// allocate it. For a failure, error.type varies, so they build the slice each time.
func addWith(attributes []attribute.KeyValue, more ...attribute.KeyValue) []metric.AddOption {
	return []metric.AddOption{setOf(attributes, more...)}
}

func recordWith(attributes []attribute.KeyValue, more ...attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{setOf(attributes, more...)}
}

func setOf(attributes []attribute.KeyValue, more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(slices.Concat(attributes, more)...))
}
