package lint_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

var start = time.Date(2025, 12, 4, 17, 4, 0, 0, time.UTC)

func ExampleQueueChecker() {
	s := lint.NewQueueChecker()
	send := func(at time.Duration, cloud string) {
		m := lint.Message{Body: strings.Replace(goodBody, "0.25", cloud, 1), GroupID: "p28r33"}
		fmt.Println(at, len(s.Check(start.Add(at), m)))
		for _, f := range s.Check(start.Add(at), m) {
			fmt.Println(f.Rule, f.Message)
		}
	}
	send(0, "0.25")
	send(time.Minute, "0.25") // a replay
	send(2*time.Minute, "0.5")
	// Output:
	// 0s 0
	// 1m0s 0
	// 2m0s 1
	// SF061 dedupe_key "landsat|LC09_L2SP_028033_20251204" was sent as message 1 at 2025-12-04T17:04:00Z with another payload: the key was given to another event
}

type step struct {
	after   time.Duration
	message lint.Message
}

var streamCases = []struct {
	rule, name string
	bad, good  []step // messages; only the last bad message has a finding
	field      string
	says       string
}{
	{
		"SF060", "an attribute changes",
		[]step{{0, withRoute("north")}, {time.Minute, withRoute("south")}},
		[]step{{0, withRoute("north")}, {time.Minute, withRoute("north")}},
		"MessageAttributes", "as message 1 at 2025-12-04T17:04:00Z with other attributes than this message has (route)",
	},
	{
		"SF060", "an attribute goes",
		[]step{{0, withRoute("north")}, {5*time.Minute - 1, good()}},
		[]step{{0, withRoute("north")}, {5 * time.Minute, good()}},
		"MessageAttributes", "(none)",
	},
	{
		"SF060", "trace context is no attribute of that kind",
		[]step{{0, good()}, {0, attribute("trace", text("1"))}},
		[]step{{0, good()}, {0, attribute("traceparent", text("00-1"))}},
		"MessageAttributes", "(trace)",
	},
	{
		"SF061", "another payload",
		[]step{{0, good()}, {time.Second, body("0.25", "0.5")}},
		[]step{{0, good()}, {time.Second, otherEvent("0.5")}},
		"MessageBody", "another payload: the key was given to another event",
	},
	{
		"SF061", "built again",
		[]step{{0, good()}, {5*time.Minute - 1, body(clock, "2025-12-04T17:03:22Z")}},
		[]step{{0, good()}, {5 * time.Minute, body(clock, "2025-12-04T17:03:22Z")}},
		"MessageBody", "the same payload in another envelope",
	},
	{
		"SF062", "another key",
		[]step{{0, good()}, {time.Second, body(key, "landsat|another")}},
		[]step{{0, good()}, {time.Second, otherEvent("0.25")}},
		"MessageBody", "with another dedupe_key",
	},
	{
		"SF063", "another group",
		[]step{{0, good()}, {time.Second, with(func(m *lint.Message) { m.GroupID = "p1r1" })}},
		[]step{{0, good()}, {time.Second, good()}},
		"MessageGroupId", `to another message group than "p1r1"`,
	},
	{
		"SF064", "another body",
		[]step{{0, withID(good(), "one")}, {time.Second, withID(otherEvent("0.5"), "one")}},
		[]step{{0, withID(good(), "one")}, {time.Second, withID(otherEvent("0.5"), "two")}},
		"MessageDeduplicationId", `"one" was sent as message 1`,
	},
}

func withRoute(route string) lint.Message { return attribute("route", text(route)) }

func withID(m lint.Message, id string) lint.Message {
	m.DeduplicationID = id
	return m
}

// otherEvent returns a message like good() for another event, with another dedupe key and
// event ID and the given cloud cover.
func otherEvent(cloud string) lint.Message {
	m := good()
	m.Body = strings.NewReplacer(key, "landsat|another", id, "019ae7b0-8c00-7abc-9def-0123456789ac", "0.25", cloud).Replace(m.Body)
	return m
}

func TestStream(t *testing.T) {
	for _, c := range streamCases {
		check := func(steps []step) []lint.Finding {
			s, at := lint.NewQueueChecker(), start
			var last []lint.Finding
			for _, step := range steps {
				at = at.Add(step.after)
				last = s.Check(at, step.message)
			}
			return last
		}
		t.Run(c.rule+"/"+c.name, func(t *testing.T) {
			bad := check(c.bad)
			require.Len(t, bad, 1)
			assert.Equal(t, c.rule, bad[0].Rule)
			assert.Equal(t, c.field, bad[0].Field)
			assert.Contains(t, bad[0].Message, c.says)
			assert.Equal(t, lint.Error, bad[0].Severity)
			assert.Empty(t, check(c.good))
		})
	}
}

// A stream remembers a message for five minutes. An equal message does not extend this
// time.
func TestStreamForgetsAsSQSDoes(t *testing.T) {
	s := lint.NewQueueChecker()
	for _, at := range []time.Duration{0, 4 * time.Minute, 5*time.Minute - 1} {
		assert.Empty(t, s.Check(start.Add(at), good()))
	}
	assert.Empty(t, s.Check(start.Add(5*time.Minute), body("0.25", "0.5")), "SQS and the stream have forgotten the first")
	assert.NotEmpty(t, s.Check(start.Add(5*time.Minute), good()), "and remember this one")
}

// For random messages, a QueueChecker has the same findings as a simple model of it: three maps
// with the text of the earlier messages.
func TestStreamAgainstAModel(t *testing.T) {
	type seen struct {
		at                        time.Time
		body, key, attribute, grp string
	}
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s, at := lint.NewQueueChecker(), start
		byBody, byKey, byEvent := map[string]seen{}, map[string]seen{}, map[string]seen{}
		for range 300 {
			at = at.Add(time.Duration(rng.IntN(60)) * time.Second)
			k, e := fmt.Sprintf("landsat|%d", rng.IntN(3)), fmt.Sprintf("019ae7b0-8c00-7abc-9def-%012d", rng.IntN(3))
			m := good()
			m.Body = strings.NewReplacer(key, k, id, e).Replace(m.Body)
			is := seen{at, m.Body, k, fmt.Sprint(rng.IntN(2)), fmt.Sprint("g", rng.IntN(2))}
			m.GroupID = is.grp
			m.Attributes = map[string]lint.Attribute{"route": text(is.attribute)}
			want := map[string]bool{}
			look := func(in map[string]seen, id string) (seen, bool) {
				was, ok := in[id]
				if ok && at.Sub(was.at) < 5*time.Minute {
					return was, true
				}
				in[id] = is
				return seen{}, false
			}
			if was, ok := look(byBody, m.Body); ok {
				want["SF060"], want["SF063"] = was.attribute != is.attribute, was.grp != is.grp
			}
			if was, ok := look(byKey, k); ok {
				want["SF061"] = was.body != is.body
			}
			if was, ok := look(byEvent, e); ok {
				want["SF062"] = was.key != is.key
			}
			got := map[string]bool{}
			for _, f := range s.Check(at, m) {
				got[f.Rule] = true
			}
			for _, rule := range []string{"SF060", "SF061", "SF062", "SF063"} {
				require.Equal(t, want[rule], got[rule], "seed %d, %s", seed, rule)
			}
		}
	}
}

// For a stream's first message, QueueChecker.Check returns the same findings as the function
// Check. If the message is sent again unchanged, QueueChecker.Check returns these findings again.
func FuzzStream(f *testing.F) {
	f.Add(goodBody, "p28r33", "")
	f.Add(`{"dedupe_key":1,"event_id":[],"payload":`, "", "\xff")
	f.Fuzz(func(t *testing.T, body, group, id string) {
		m := lint.Message{Body: body, GroupID: group, DeduplicationID: id}
		s := lint.NewQueueChecker()
		for range 2 {
			require.Equal(t, lint.Check(m), s.Check(start, m), "a first message, or its replay")
		}
	})
}
