package message

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// probe is an event whose encoding a test chooses.
type probe struct {
	encode func() any
	n      int
}

func (p probe) MarshalJSON() ([]byte, error) { return json.Marshal(p.encode()) }

func identifyProbe(p probe) (sqsfifo.Identity, error) {
	return sqsfifo.Identity{DedupeKey: fmt.Sprintf("probe|%d", p.n), Group: "g", Time: time.Unix(int64(p.n), 0)}, nil
}

func constant() any { return map[string]any{"n": 1} }

// Each value that differs between two builds of an event refuses the first event. The error
// names the member and the kinds of the values, and has no value.
func TestImpureProducersAreRefusedAtOnce(t *testing.T) {
	counter, once := 0, sync.Once{}
	big := map[string]int{}
	for i := range 100 {
		big[fmt.Sprint(i)] = i
	}
	var order []string
	identity := func(change func(*sqsfifo.Identity, *probe)) func(*sqsfifo.Config[probe]) {
		return func(c *sqsfifo.Config[probe]) {
			c.Identify = func(p probe) (sqsfifo.Identity, error) {
				id, err := identifyProbe(p)
				change(&id, &p)
				return id, err
			}
		}
	}
	for _, tc := range []struct {
		name, rule, field, pointer, says string
		encode                           func() any
		change                           func(*sqsfifo.Config[probe])
	}{
		{name: "time.Now", rule: "SF012", field: "Identity.Time", pointer: "/event_time", says: "a time here, then another one", change: identity(func(id *sqsfifo.Identity, _ *probe) { id.Time = time.Now() })},
		{name: "uuid.New in the key", rule: "SF002", field: "Identity.DedupeKey", pointer: "/dedupe_key", says: "a UUID here", change: identity(func(id *sqsfifo.Identity, _ *probe) { id.DedupeKey = uuid.NewString() })},
		{name: "a fresh event ID", rule: "SF012", field: "Identity.EventID", pointer: "/event_id", says: "a UUID here", change: identity(func(id *sqsfifo.Identity, _ *probe) { id.EventID = uuid.Must(uuid.NewV7()) })},
		{name: "a counter", rule: "SF002", field: "Identity.DedupeKey", pointer: "/dedupe_key", says: "a text of", change: identity(func(id *sqsfifo.Identity, _ *probe) { counter++; id.DedupeKey += fmt.Sprint("|", counter) })},
		{name: "rand in the group", rule: "SF007", field: "Identity.Group", change: identity(func(id *sqsfifo.Identity, _ *probe) { id.Group = fmt.Sprint(rand.Uint64()) })},
		{name: "the address of the event", rule: "SF002", field: "Identity.DedupeKey", pointer: "/dedupe_key", change: identity(func(id *sqsfifo.Identity, p *probe) { id.DedupeKey = fmt.Sprintf("%p", p) })},
		{name: "a clock in the payload", rule: "SF012", field: "MessageBody", pointer: "/payload/a~1b/1/sent_at", says: "a time here, then another one", encode: func() any {
			return map[string]any{"a/b": []any{1, map[string]any{"sent_at": time.Now(), "z": 1}}}
		}},
		{name: "the order of a map", rule: "SF012", field: "MessageBody", pointer: "/payload/names/", encode: func() any {
			// Two loops over a map have the same order now and then.
			for before := order; slices.Equal(order, before); {
				order = slices.Collect(maps.Keys(big))
			}
			return map[string]any{"names": order}
		}},
		{name: "a member that comes and goes", rule: "SF012", field: "MessageBody", pointer: "/payload/first", says: "a boolean here, then nothing", encode: func() any {
			m := map[string]any{"n": 1}
			once.Do(func() { m["first"] = true })
			return m
		}},
		{name: "an attribute", rule: "SF001", field: `MessageAttributes["route"]`, says: "a UUID here", change: func(c *sqsfifo.Config[probe]) {
			c.Attributes = func(probe) map[string]string {
				return map[string]string{"route": uuid.NewString(), "traceparent": uuid.NewString()}
			}
		}},
		{name: "an attribute of the second build", rule: "SF001", field: `MessageAttributes["route"]`, says: "a text of 0 bytes here", change: func(c *sqsfifo.Config[probe]) {
			builds := 0
			c.Attributes = func(probe) map[string]string {
				if builds++; builds == 1 {
					return nil
				}
				return map[string]string{"route": "b"}
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := producertest.NewQueue(t, sqstest.Config{})
			for _, enforcement := range []sqsfifo.Enforcement{sqsfifo.EnforcementRefuse, sqsfifo.EnforcementWarn} {
				once = sync.Once{}
				c := sqsfifo.Config[probe]{QueueURL: q.URL(), Source: producertest.Source, Identify: identifyProbe, Enforcement: enforcement}
				if tc.change != nil {
					tc.change(&c)
				}
				if tc.encode == nil {
					tc.encode = constant
				}
				p, err := sqsfifo.NewProducer(q, c)
				require.NoError(t, err)
				receipt, err := p.Send(t.Context(), probe{tc.encode, 7})
				require.NoError(t, p.Close(t.Context()))
				findings := receipt.Findings
				if enforcement == sqsfifo.EnforcementRefuse {
					var wrong *sqsfifo.ViolationError
					require.ErrorAs(t, err, &wrong)
					assert.ErrorContains(t, err, tc.says)
					assert.Equal(t, sqsfifo.FateNotStored, sqsfifo.FateOf(err))
					assert.Empty(t, q.Messages())
					findings = wrong.Findings
				} else {
					require.NoError(t, err)
					assert.Len(t, q.Messages(), 1)
				}
				require.Len(t, findings, 1, "%v", findings)
				assert.Equal(t, tc.rule, findings[0].Rule)
				assert.Equal(t, tc.field, findings[0].Field)
				assert.Contains(t, findings[0].Pointer, tc.pointer)
			}
		})
	}
}

// Pure events are never refused. A function that becomes impure is noticed at the next event
// that is built twice, and nothing is built twice in between.
func TestPureProducersAreNot(t *testing.T) {
	calls, broken := 0, false
	q := producertest.NewQueue(t, sqstest.Config{})
	p, err := sqsfifo.NewProducer(q, sqsfifo.Config[probe]{
		QueueURL: q.URL(), Source: producertest.Source, Identify: func(p probe) (sqsfifo.Identity, error) {
			calls++
			id, err := identifyProbe(p)
			switch {
			case broken:
				id.DedupeKey += uuid.NewString()
			case p.n < 0:
				err = errors.New("no event")
			}
			return id, err
		},
	})
	require.NoError(t, err)
	_, err = p.Build(probe{constant, -1})
	require.Error(t, err)
	for n := range 10_000 {
		_, err := p.Build(probe{constant, n})
		require.NoError(t, err)
	}
	assert.Equal(t, 10_002, calls, "the event that failed, and the first event twice")
	broken = true
	_, err = p.Build(probe{constant, 1})
	require.ErrorContains(t, err, "SF002")
	_, err = p.Build(probe{constant, 1})
	require.NoError(t, err)
	assert.Equal(t, 10_005, calls)
}
