package kfm

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// scene is the event of the examples: a Landsat product.
type scene struct {
	ID         string    `json:"scene_id"`
	Tile       string    `json:"tile"`
	Acquired   time.Time `json:"acquired"`
	CloudCover float64   `json:"cloud_cover"`
}

var landsat = scene{ID: "LC08_L2SP_047027_20201204_20210313_02_T1", Tile: "047027", Acquired: time.Date(2020, 12, 4, 19, 2, 11, 194e6, time.UTC), CloudCover: 1.55}

func identify(s scene) (sqsfifo.Identity, error) {
	key, err := sqsfifo.JoinKey("landsat", s.ID)
	return sqsfifo.Identity{DedupeKey: key, Group: s.Tile, Time: s.Acquired}, err
}

// producer returns a producer of scenes for a fake queue.
func producer(t *testing.T, client sqsfifo.Client, q *sqstest.Queue, change ...func(*sqsfifo.Config[scene])) *sqsfifo.Producer[scene] {
	t.Helper()
	c := sqsfifo.Config[scene]{QueueURL: q.URL(), Source: "kfm.remote-sensing.landsat-refresh", Identify: identify}
	for _, f := range change {
		f(&c)
	}
	p, err := sqsfifo.NewProducer(client, c)
	require.NoError(t, err)
	return p
}

func newQueue(t *testing.T) *sqstest.Queue {
	t.Helper()
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	return q
}

// body returns the body of the message that a producer sends for scene s.
func body(t *testing.T, s scene) string {
	t.Helper()
	q := newQueue(t)
	m, err := producer(t, q, q).Build(s)
	require.NoError(t, err)
	return m.Body
}

// envelopeTable lists the members of the envelope with their rules.
func envelopeTable(t *testing.T, _ []string) string {
	rows := [][]string{{"member", "rule", "required form"}}
	members := reflect.TypeFor[sqsfifo.Envelope[scene]]()
	for i := range members.NumField() {
		name := members.Field(i).Tag.Get("json")
		rule := ruleNamed(t, strings.ReplaceAll(name, "_", "-"))
		rows = append(rows, []string{code(name), ruleLink(rule), rule.Wording})
	}
	return table(rows...)
}

// exampleBody returns the body of the example scene and the body's hash, as Markdown.
func exampleBody(t *testing.T, _ []string) string {
	text := body(t, landsat)
	return fmt.Sprintf("```json\n%s\n```\n\nSHA-256, which is the deduplication ID: `%s`\n", text, sqsfifo.BodyHash(text))
}

// rulesTable lists the rules with the given IDs.
func rulesTable(t *testing.T, ids []string) string {
	rows := [][]string{{"rule", "severity", "decided on", "what breaks it", "way out"}}
	for _, id := range ids {
		r, ok := lint.Lookup(id)
		require.True(t, ok, "there is no rule %s", id)
		rows = append(rows, []string{ruleLink(r) + " " + r.Name, r.Severity.String(), r.Passes.String(), r.Title, r.Fix})
	}
	return table(rows...)
}

func ruleNamed(t *testing.T, name string) lint.Rule {
	t.Helper()
	for _, r := range lint.Rules() {
		if r.Name == name {
			return r
		}
	}
	require.Fail(t, "no rule", "is called %s", name)
	return lint.Rule{}
}

func ruleLink(r lint.Rule) string {
	return fmt.Sprintf("[%s](../../rules.md#%s)", r.ID, strings.ToLower(r.ID))
}

// casesTable lists the cases of the compliance suite with the given names, in which "_"
// stands for a space. If `names` is empty, it lists all cases.
func casesTable(t *testing.T, names []string) string {
	rows := [][]string{{"case", "what it asserts", "source"}}
	cases := complianceCases(t)
	if len(names) == 0 {
		for _, c := range cases {
			rows = append(rows, c[:])
		}
	}
	for _, name := range names {
		found := false
		for _, c := range cases {
			if c[0] == strings.ReplaceAll(name, "_", " ") {
				rows = append(rows, c[:])
				found = true
			}
		}
		require.True(t, found, "the suite has no case %s", name)
	}
	return table(rows...)
}

// complianceCases reads the name, rule and field `source` of each case from suite.go.
func complianceCases(t *testing.T) (cases [][3]string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), root+"sqstest/compliance/suite.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != "complianceCases" {
			return true
		}
		for _, element := range spec.Values[0].(*ast.CompositeLit).Elts {
			var c [3]string
			for i, e := range element.(*ast.CompositeLit).Elts[:3] {
				literal, ok := e.(*ast.BasicLit)
				require.True(t, ok, "a case begins with its name, rule and source")
				c[i], err = strconv.Unquote(literal.Value)
				require.NoError(t, err)
			}
			cases = append(cases, c)
		}
		return false
	})
	require.NotEmpty(t, cases, "complianceCases in suite.go")
	return cases
}

// namesTable returns a table of the words in attribute names, read from the source code of
// package attrname. For example, event_id consists of a word for an event and a noun, and
// request_id of a word for an attempt and a noun.
func namesTable(t *testing.T, _ []string) string {
	file, err := parser.ParseFile(token.NewFileSet(), root+"internal/attrname/attrname.go", nil, 0)
	require.NoError(t, err)
	lists := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		var words []string
		for _, e := range spec.Values[0].(*ast.CompositeLit).Elts {
			word, err := strconv.Unquote(e.(*ast.BasicLit).Value)
			require.NoError(t, err)
			words = append(words, word)
		}
		lists[spec.Names[0].Name] = quoted(words)
		return false
	})
	for _, name := range []string{"eventStems", "attemptStems", "retryStems", "nouns", "deliveryNames", "retryNames"} {
		require.NotEmpty(t, lists[name], "the list %s in attrname.go", name)
	}
	return table(
		[]string{"", "words", "nouns"},
		[]string{"an event's identity", lists["eventStems"], lists["nouns"]},
		[]string{"an event's delivery, by well-known senders (`ce-id`, `X-GitHub-Delivery`)", lists["deliveryNames"], ""},
		[]string{"the identity of a conversation, accepted by SF001", lists["attemptStems"], lists["nouns"]},
		[]string{"an attempt's identity, which a retry may change (`request_id`, `X-Request-Id`)", lists["retryStems"], lists["nouns"]},
		[]string{"the number or time of an attempt, which a retry may change (`X-Retry-Count`)", lists["retryNames"], ""},
	)
}

// hashTable sends variants of one message to a fake queue and shows the deduplication
// ID of each variant.
func hashTable(t *testing.T, _ []string) string {
	original := body(t, landsat)
	other := landsat
	other.ID = "LC08_L2SP_047027_20201204_20210313_02_T2"
	cloudier := landsat
	cloudier.CloudCover = 2.5
	var spaced map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(original), &spaced))
	pretty, err := json.MarshalIndent(spaced, "", "  ")
	require.NoError(t, err)

	rows := [][]string{{"what changes", "deduplication ID", "sent after the first"}}
	for _, v := range []struct {
		what    string
		message sqstest.TimedMessage
	}{
		{"nothing (the first message)", sqstest.TimedMessage{Body: original}},
		{"nothing (a replay)", sqstest.TimedMessage{Body: original}},
		{"an attribute", sqstest.TimedMessage{Body: original, Attributes: map[string]string{"unique_key": "landsat-2025-12-04T00:00Z"}}},
		{"the message group", sqstest.TimedMessage{Body: original, GroupID: "p32r29"}},
		{"`dedupe_key`, and `event_id` with it", sqstest.TimedMessage{Body: body(t, other)}},
		{"the payload alone", sqstest.TimedMessage{Body: body(t, cloudier)}},
		{"white space in the body", sqstest.TimedMessage{Body: string(pretty)}},
	} {
		at := landsat.Acquired
		first := sqstest.TimedMessage{At: at, GroupID: "047027", Body: original}
		v.message.At = at.Add(time.Minute)
		if v.message.GroupID == "" {
			v.message.GroupID = first.GroupID
		}
		log := []sqstest.TimedMessage{first, v.message}
		if len(rows) == 1 {
			log = log[:1]
		}
		outcomes, err := sqstest.Simulate(sqstest.Config{}, log)
		require.NoError(t, err)
		last := outcomes[len(outcomes)-1]
		result := string(last.Result)
		if last.Collides >= 0 {
			result += ", although the key is the same"
		}
		if len(last.Lost) > 0 {
			result += ", and what differed is lost"
		}
		rows = append(rows, []string{v.what, code(last.DeduplicationID[:16]) + "...", result})
	}
	return table(rows...)
}

// windowTable simulates two events that are sent several times, within the deduplication
// interval and after it. The table has the result of SQS for each send.
func windowTable(t *testing.T, _ []string) string {
	other := landsat
	other.ID = "LC08_L2SP_047027_20201204_20210313_02_T2"
	bodies := map[string]string{"A": body(t, landsat), "B": body(t, other)}
	type send struct {
		after time.Duration
		event string
		why   string
	}
	sends := []send{
		{0, "A", "a new event"},
		{30 * time.Second, "A", "a retry of the same event"},
		{time.Minute, "B", "another event: another dedupe_key"},
		{3 * time.Minute, "A", "a replay from the write-ahead log"},
		{5*time.Minute - time.Millisecond, "A", "the last instant of the interval, which a suppressed send does not extend"},
		{5 * time.Minute, "A", "after the interval: the consumer has to recognise it"},
		{6*time.Minute - time.Millisecond, "B", "the interval of B began with B"},
	}
	var log []sqstest.TimedMessage
	for _, s := range sends {
		log = append(log, sqstest.TimedMessage{At: landsat.Acquired.Add(s.after), GroupID: landsat.Tile, Body: bodies[s.event]})
	}
	outcomes, err := sqstest.Simulate(sqstest.Config{}, log)
	require.NoError(t, err)
	rows := [][]string{{"time", "event", "SQS", "because"}}
	for i, s := range sends {
		m, rest := s.after/time.Minute, s.after%time.Minute
		rows = append(rows, []string{fmt.Sprintf("%d:%06.3f", m, rest.Seconds()), s.event, string(outcomes[i].Result), s.why})
	}
	return table(rows...)
}
