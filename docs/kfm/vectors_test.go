package kfm

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/md5" // #nosec G501 -- SQS's own digest
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// vector is one line of a file in the folder vectors. The folder's README has the format.
type vector struct {
	ID      string `json:"id"`
	Rule    string `json:"rule"`
	Op      string `json:"op"`
	Note    string `json:"note,omitempty"`
	In      input  `json:"in"`
	Out     any    `json:"out,omitempty"`
	Refused string `json:"refused,omitempty"` // rule that the input breaks, such as "J3"; "" for valid input
}

// input is the input of a vector. Each operation uses some of the members; the others are
// empty.
type input struct {
	Text            *text             `json:"text,omitempty"`
	Parts           *[]text           `json:"parts,omitempty"`
	Key             *text             `json:"key,omitempty"`
	Time            string            `json:"time,omitempty"`
	Source          *string           `json:"event_source,omitempty"`
	Organization    string            `json:"organization,omitempty"`
	DedupeKey       *text             `json:"dedupe_key,omitempty"`
	EventTime       string            `json:"event_time,omitempty"`
	EventID         string            `json:"event_id,omitempty"`
	Payload         text              `json:"payload,omitempty"`
	Group           *string           `json:"group,omitempty"`
	Attributes      map[string]string `json:"attributes,omitempty"`
	DatasetID       *text             `json:"dataset_id,omitempty"`
	Version         *text             `json:"version,omitempty"`
	SourceURI       *text             `json:"source_uri,omitempty"`
	QueryParameters []string          `json:"query_parameters,omitempty"`
}

// text is a string in a vector file. Invalid UTF-8 is written in base64, and a long run
// of one character as [character, count].
type text string

func (s text) MarshalJSON() ([]byte, error) {
	var out any = string(s)
	switch {
	case !utf8.ValidString(string(s)):
		out = map[string]string{"base64": base64.StdEncoding.EncodeToString([]byte(s))}
	case len(s) > 1500:
		var runs [][]any
		for part := range runsOf(string(s)) {
			runs = append(runs, []any{part.text, part.count})
		}
		out = map[string]any{"runs": runs}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(out)
	return b.Bytes(), err
}

type textRun struct {
	text  string
	count int
}

// runsOf yields runs of at least 64 equal characters, and the texts between.
func runsOf(s string) func(func(textRun) bool) {
	return func(yield func(textRun) bool) {
		plain := 0
		for i := 0; i < len(s); {
			_, size := utf8.DecodeRuneInString(s[i:])
			n := 1
			for strings.HasPrefix(s[i+n*size:], s[i:i+size]) {
				n++
			}
			if n >= 64 {
				if plain < i && !yield(textRun{s[plain:i], 1}) || !yield(textRun{s[i : i+size], n}) {
					return
				}
				plain = i + n*size
			}
			i += n * size
		}
		if plain < len(s) {
			yield(textRun{s[plain:], 1})
		}
	}
}

// operations are the functions of the specification, implemented by this module.
var operations = map[string]func(in *input) (any, error){
	"canonicalize": func(in *input) (any, error) {
		out, err := canonicaljson.CanonicalizeStrict([]byte(*in.Text))
		return text(out), err
	},
	"hash": func(in *input) (any, error) {
		md := md5.Sum([]byte(*in.Text)) // #nosec G401 -- SQS's own digest
		return map[string]string{"sha256": sqsfifo.BodyHash(string(*in.Text)), "md5": hex.EncodeToString(md[:])}, nil
	},
	"join_key": func(in *input) (any, error) {
		var parts []string
		for _, p := range *in.Parts {
			parts = append(parts, string(p))
		}
		key, err := sqsfifo.JoinKey(parts...)
		return text(key), err
	},
	"check_key":    func(in *input) (any, error) { return *in.Key, refusal(lint.CheckDedupeKey(string(*in.Key))) },
	"event_time":   func(in *input) (any, error) { return eventTime(in.Time) },
	"event_id":     eventID,
	"check_source": func(in *input) (any, error) { return *in.Source, refusal(contractOf(in).CheckSource(*in.Source)) },
	"envelope": func(in *input) (any, error) {
		msg, err := build(in, "g")
		if err != nil {
			return nil, err
		}
		return text(msg.Body), nil
	},
	"check_body": func(in *input) (any, error) { return true, refusal(contractOf(in).CheckBody(string(*in.Text))) },
	"dataset":    datasetKey,
	"check_dataset_key": func(in *input) (any, error) {
		_, err := sqsfifo.ParseIdempotencyKey(string(*in.Key))
		return *in.Key, err
	},
	"message": func(in *input) (any, error) {
		msg, err := build(in, *in.Group)
		if err != nil {
			return nil, err
		}
		return stored{text(msg.Body), msg.Group, sqsfifo.BodyHash(msg.Body), msg.Attributes}, nil
	},
}

// stored is the output of the operation "message": the message as a queue with
// content-based deduplication stores it.
type stored struct {
	Body            text              `json:"body"`
	Group           string            `json:"group"`
	DeduplicationID string            `json:"deduplication_id"`
	Attributes      map[string]string `json:"attributes,omitempty"`
}

func contractOf(in *input) lint.Contract { return lint.Contract{Organization: in.Organization} }

func refusal(findings []lint.Finding) error {
	for _, f := range findings {
		if f.Severity == lint.Error {
			return &sqsfifo.ViolationError{Findings: findings}
		}
	}
	return nil
}

// textTime matches a time in the form that rule T5 of the specification requires.
// UnmarshalText of time.Time also accepts other forms.
var textTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

func instant(s string) (time.Time, error) {
	var at time.Time
	if !textTime.MatchString(s) {
		return at, errors.New("not a time")
	}
	if err := at.UnmarshalText([]byte(s)); err != nil {
		return at, err
	}
	if at.IsZero() {
		return at, errors.New("zero time")
	}
	return at.UTC(), nil
}

func eventTime(s string) (any, error) {
	at, err := instant(s)
	if err != nil {
		return nil, err
	}
	b, err := at.MarshalText()
	return string(b), err
}

func eventID(in *input) (any, error) {
	at, err := instant(in.EventTime)
	if err != nil {
		return nil, err
	}
	return sqsfifo.DeriveEventID(*in.Source, string(*in.DedupeKey), at).String(), nil
}

func datasetKey(in *input) (any, error) {
	d := sqsfifo.Dataset{ID: string(*in.DatasetID), Version: string(*in.Version), SourceURI: string(*in.SourceURI), QueryParameters: in.QueryParameters}
	normal, err := d.Normalize()
	if err != nil {
		return nil, err
	}
	key, err := d.IdempotencyKey()
	return map[string]string{"dataset_id": normal.ID, "version": normal.Version, "source_uri": normal.SourceURI, "idempotency_key": key}, err
}

// event is an event with a JSON text as payload.
type event struct{ in *input }

func (e event) MarshalJSON() ([]byte, error) { return []byte(e.in.Payload), nil }

// producers caches the producers by their source and organization.
var producers = map[[2]string]*sqsfifo.Producer[event]{}

func producerOf(in *input) (*sqsfifo.Producer[event], error) {
	id := [2]string{*in.Source, in.Organization}
	if p := producers[id]; p != nil {
		return p, nil
	}
	q, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		return nil, err
	}
	p, err := sqsfifo.NewProducer(q, sqsfifo.Config[event]{
		QueueURL: q.URL(), Source: *in.Source, Organization: in.Organization,
		Identify: func(e event) (sqsfifo.Identity, error) {
			at, err := instant(e.in.EventTime)
			if err != nil {
				return sqsfifo.Identity{}, err
			}
			id := sqsfifo.Identity{DedupeKey: string(*e.in.DedupeKey), Group: *e.in.Group, Time: at}
			if e.in.EventID != "" {
				id.EventID, err = uuid.Parse(e.in.EventID)
			}
			return id, err
		},
		Attributes: func(e event) map[string]string { return e.in.Attributes },
	})
	if err == nil {
		producers[id] = p
	}
	return p, err
}

func build(in *input, group string) (*sqsfifo.Message, error) {
	p, err := producerOf(in)
	if err != nil {
		return nil, err
	}
	with := *in
	with.Group = &group
	return p.Build(event{&with})
}

// TestVectors makes each file of test vectors from the code, and compares the result with
// the committed file. With -update it writes the files.
func TestVectors(t *testing.T) {
	files := map[string][]string{}
	total, seen := 0, map[string]bool{}
	for _, v := range vectors(t) {
		out, err := operations[v.Op](&v.In)
		assert.Equal(t, v.Refused != "", err != nil, "%s %s: %v", v.ID, v.Note, err)
		if v.Refused == "" {
			v.Out = out
		}
		line, err := marshal(v)
		require.NoError(t, err)
		same, err := marshal(struct{ A, B any }{v.Op, v.In})
		require.NoError(t, err)
		assert.False(t, seen[same], "%s %s: the case is there twice", v.ID, v.Note)
		seen[same] = true
		file := "vectors/" + fileOf[v.Rule[:1]] + ".jsonl"
		files[file] = append(files[file], line)
		total++
	}
	assert.GreaterOrEqual(t, total, 400)
	onDisk, err := filepath.Glob("vectors/*.jsonl")
	require.NoError(t, err)
	if !*update {
		assert.Len(t, onDisk, len(files), "a file without cases")
	}
	for file, lines := range files {
		want := strings.Join(lines, "\n") + "\n"
		if *update {
			require.NoError(t, os.MkdirAll("vectors", 0o750))
			require.NoError(t, os.WriteFile(file, []byte(want), 0o600))
		}
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, want, string(got), "stale; run: go test ./docs/kfm -update")
	}
}

// fileOf maps the first letter of a rule's number to the name of the rule's file.
var fileOf = map[string]string{
	"J": "canonical-json", "H": "hashes", "K": "dedupe-keys", "T": "times", "I": "event-ids", "S": "sources",
	"E": "envelopes", "D": "datasets", "M": "messages",
}

func marshal(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

var specified = regexp.MustCompile(`(?m)^\| \*\*([A-Z]\d+)\*\* \| (.*) \|$`)

// rulesOfSpecification returns the text of each rule by the rule's number, for example J1.
func rulesOfSpecification(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("specification.md")
	require.NoError(t, err)
	rules := map[string]string{}
	for _, m := range specified.FindAllStringSubmatch(string(page), -1) {
		require.NotContains(t, rules, m[1], "a rule stands twice")
		rules[m[1]] = m[2]
	}
	return rules
}

// Each rule of the specification has a test vector, and each vector names a rule of the
// specification. A rule that refuses input has a vector with refused input.
func TestEveryRuleHasAVector(t *testing.T) {
	rules := rulesOfSpecification(t)
	require.Greater(t, len(rules), 60)
	used, refused := map[string]int{}, map[string]int{}
	for _, v := range vectors(t) {
		assert.Contains(t, rules, v.Rule, v.ID)
		used[v.Rule]++
		if v.Refused != "" {
			assert.Contains(t, rules, v.Refused, v.ID)
			refused[v.Rule]++
		}
	}
	for rule, words := range rules {
		assert.NotZero(t, used[rule], "%s has no vector", rule)
		if strings.Contains(words, "refused") || strings.Contains(words, "refuses") {
			assert.NotZero(t, refused[rule], "%s refuses, and has no refused vector", rule)
		}
	}
	for id := range fileOf {
		assert.True(t, slices.ContainsFunc(vectors(t), func(v vector) bool { return v.Rule[:1] == id }), id)
	}
}

var ruleIDs = regexp.MustCompile(`\(((?:SF\d+(?:, | to )?)+)\)`)

// A rule in the specification may list lint rules, as in "(SF001 to SF004)". If an input
// breaks the rule and the error is a [sqsfifo.ViolationError], the error must name one of
// these lint rules.
func TestRulesOfTheLint(t *testing.T) {
	rules := rulesOfSpecification(t)
	for _, v := range vectors(t) {
		m := ruleIDs.FindStringSubmatch(rules[v.Refused])
		if m == nil {
			continue
		}
		first, last := m[1][:5], m[1][len(m[1])-5:]
		_, err := operations[v.Op](&v.In)
		var broken *sqsfifo.ViolationError
		if !errors.As(err, &broken) {
			continue // only a ViolationError names lint rules
		}
		assert.True(t, slices.ContainsFunc(broken.Findings, func(f lint.Finding) bool {
			return f.Rule >= first && f.Rule <= last
		}), "%s names %s, the lint says %v", v.ID, m[1], broken.Findings)
	}
}

// A producer sends the message of each vector to a fake queue. The stored message has the
// body, group, deduplication ID and attributes of the vector's output.
func TestMessagesArriveAsTheVectorsSay(t *testing.T) {
	for _, v := range vectors(t) {
		if v.Op != "message" || v.Refused != "" {
			continue
		}
		msg, err := build(&v.In, *v.In.Group)
		require.NoError(t, err)
		q, err := sqstest.NewQueue(sqstest.Config{})
		require.NoError(t, err)
		on, err := sqsfifo.NewProducer(q, sqsfifo.Config[event]{
			QueueURL: q.URL(), Source: *v.In.Source, Organization: v.In.Organization,
			Identify: func(event) (sqsfifo.Identity, error) { return sqsfifo.Identity{}, errors.New("not called") },
		})
		require.NoError(t, err)
		_, err = on.SendMessage(t.Context(), msg)
		require.NoError(t, err, v.ID)
		require.NoError(t, on.Close(t.Context()))
		require.Len(t, q.Messages(), 1)
		got := q.Messages()[0]
		want, err := operations["message"](&v.In)
		require.NoError(t, err)
		attributes := map[string]string{}
		for name, a := range got.Attributes {
			attributes[name] = *a.StringValue
		}
		assert.Equal(t, len(want.(stored).Attributes), len(attributes))
		for name, value := range want.(stored).Attributes {
			assert.Equal(t, value, attributes[name])
		}
		assert.Equal(t, want.(stored).Body, text(got.Body))
		assert.Equal(t, want.(stored).Group, got.GroupID)
		assert.Equal(t, want.(stored).DeduplicationID, got.DeduplicationID)
	}
}

// vectors returns all cases, sorted by rule. Their IDs are set, but not their outputs.
func vectors(t testing.TB) []vector {
	t.Helper()
	all := slices.Concat(jsonCases(t), keyCases(), timeCases(), envelopeCases(), datasetCases(), messageCases(), realCases(t))
	slices.SortStableFunc(all, func(a, b vector) int {
		return cmp.Or(strings.Compare(a.Rule[:1], b.Rule[:1]), cmp.Compare(len(a.Rule), len(b.Rule)), strings.Compare(a.Rule, b.Rule))
	})
	n := map[string]int{}
	for i := range all {
		n[all[i].Rule]++
		all[i].ID = fmt.Sprintf("%s-%02d", all[i].Rule, n[all[i].Rule])
	}
	return all
}

// good returns a vector with an accepted input. refused returns a vector with an input
// that the rule refuses.
func good(rule, op, note string, in input) vector {
	return vector{Rule: rule, Op: op, Note: note, In: in}
}

func refused(rule, op, note string, in input) vector {
	return vector{Rule: rule, Op: op, Note: note, In: in, Refused: rule}
}

func ptr[T any](v T) *T { return &v }

func readLines(t testing.TB, file string, each func(line []byte)) {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		each(lines.Bytes())
	}
	require.NoError(t, lines.Err())
}
