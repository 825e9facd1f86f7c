package compliance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/jsondiff"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// attrOnlyIdentity is a lint rule. A message breaks the rule if the identity of its event is
// in an attribute and not in the body. Only the case "Attribute Ignorance" checks this rule.
const attrOnlyIdentity = "SF001"

var canonicalRules = []string{"SF030", "SF031", "SF032", "SF033"}

// allMessages yields every message in e.first, e.second and e.later, each with a
// description for errors, such as "event 0, sent again at once".
func (e *evidence) allMessages(yield func(string, sqstest.Message) bool) {
	for _, round := range []struct {
		what     string
		messages []sqstest.Message
	}{{"", e.first}, {", sent again at once", e.second}, {", sent again an hour later", e.later}} {
		for i, m := range round.messages {
			if !yield(fmt.Sprintf("event %d%s", i, round.what), m) {
				return
			}
		}
	}
}

func hashBehavior(e *evidence) error {
	for what, m := range e.allMessages {
		if want := bodyHash(m.Body); m.DeduplicationID != want {
			return fmt.Errorf("%s: MessageDeduplicationId is %q and not the SHA-256 of the body, so that the body decides nothing; leave it out, or send %s",
				what, m.DeduplicationID, want)
		}
	}
	for i, m := range e.first {
		changed, err := withDedupeKey(m.Body, "changed by the compliance suite")
		if err != nil {
			return fmt.Errorf("event %d: %w\n  body %s", i, err, m.Body)
		}
		rekeyed := m
		rekeyed.Body = changed
		suppressed, err := afterEachOther(m, rekeyed)
		if err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		if suppressed {
			return fmt.Errorf("event %d: with another dedupe_key it is suppressed all the same", i)
		}
	}
	return nil
}

func distinctEvents(e *evidence) error {
	return e.pairs(func(i, j int) error {
		a, b := e.first[i], e.first[j]
		// If only the attributes differ, the case "Attribute Ignorance" fails instead.
		if normal(a.Body) == normal(b.Body) && sameAttributes(a, b) {
			return fmt.Errorf("events %d and %d have one body; SQS delivers one of them\n  body %s", i, j, a.Body)
		}
		return nil
	})
}

func payloadMismatch(e *evidence) error {
	return e.pairs(func(i, j int) error {
		a, b := normal(e.first[i].Body), normal(e.first[j].Body)
		if key := dedupeKey(a); a != b && key == dedupeKey(b) {
			return fmt.Errorf("events %d and %d are two events with one dedupe_key, %q\n%s", i, j, key, difference(a, b))
		}
		return nil
	})
}

func timeoutAfterCommit(e *evidence) error {
	if err := e.defectElsewhere(); err != nil {
		return err
	}
	if n := len(e.afterTimeout); n != 1 {
		return fmt.Errorf("event 0 is stored %d times after its first answer was lost; the retry has another body\n%s",
			n, difference(e.afterTimeout[0].Body, e.afterTimeout[n-1].Body))
	}
	return nil
}

func groupOrder(e *evidence) error {
	if err := e.defectElsewhere(); err != nil {
		return err
	}
	groups := map[string][]string{}
	for _, m := range e.first {
		groups[m.GroupID] = append(groups[m.GroupID], m.Body)
	}
	if len(groups) == len(e.first) {
		return &notJudgedError{"no two of the events share a message group"}
	}
	for _, m := range e.ordered {
		next := groups[m.GroupID]
		if len(next) == 0 || next[0] != m.Body {
			return fmt.Errorf("in message group %q an event was stored out of order after a throttled call\n  body %s", m.GroupID, m.Body)
		}
		groups[m.GroupID] = next[1:]
	}
	for g, missing := range groups {
		if len(missing) > 0 {
			return fmt.Errorf("in message group %q an event was lost after a throttled call, although Send reported success\n  body %s", g, missing[0])
		}
	}
	return nil
}

func retryStorm(e *evidence) error {
	if err := e.defectElsewhere(); err != nil {
		return err
	}
	if e.storm.events == 0 {
		return &notJudgedError{"another case fails"}
	}
	if e.storm.accepted > 0 {
		return fmt.Errorf("of %d duplicate attempts beside %d events %d were accepted, the last of them\n  body %s",
			e.storm.duplicates, e.storm.events, e.storm.accepted, e.storm.example.Body)
	}
	return nil
}

func attributeIgnorance(e *evidence) error {
	for what, m := range e.allMessages {
		for _, f := range lint.Check(e.lintMessage(m)) {
			if f.Rule == attrOnlyIdentity && f.Severity == lint.Error {
				return fmt.Errorf("%s: %s", what, f)
			}
		}
	}
	for i, m := range e.first {
		labelled := m
		labelled.Attributes = map[string]types.MessageAttributeValue{"routing_hint": {DataType: aws.String("String"), StringValue: aws.String("another")}}
		suppressed, err := afterEachOther(m, labelled)
		if err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		if !suppressed {
			return fmt.Errorf("event %d: with other attributes the same body is delivered again", i)
		}
	}
	return e.pairs(func(i, j int) error {
		a, b := e.first[i], e.first[j]
		if normal(a.Body) == normal(b.Body) && !sameAttributes(a, b) {
			return fmt.Errorf("events %d and %d differ in attributes alone: SQS hashes the body, has both for one and drops the second\n  body %s\n  attributes %s\n  attributes %s",
				i, j, a.Body, attributeText(a), attributeText(b))
		}
		return nil
	})
}

func replayWindowCollision(e *evidence) error {
	if err := e.stableAtOnce(); err != nil {
		return err
	}
	if err := e.defectElsewhere(); err != nil {
		return err
	}
	last := len(e.first)
	if len(e.replayStored) != last+1 || len(e.replaySuppressed) != 2 {
		return fmt.Errorf("of %d events, a replay at once, one after 3 minutes and one after 5, SQS delivered %d and suppressed %d; want %d and 2%s",
			last, len(e.replayStored), len(e.replaySuppressed), last+1, reasons(e.replaySuppressed))
	}
	if e.replayStored[last].Body != e.first[0].Body {
		return fmt.Errorf("the replay after the window is not what was sent first\n%s", difference(e.first[0].Body, e.replayStored[last].Body))
	}
	return nil
}

// stableAtOnce compares each event's message with the message of a second send at the same
// instant.
func (e *evidence) stableAtOnce() error {
	for i, m := range e.first {
		if err := sameMessage(m, e.second[i]); err != nil {
			return fmt.Errorf("event %d, sent again at the same instant, is another message: the replay is delivered twice; %w", i, err)
		}
	}
	return nil
}

// defectElsewhere returns a notJudgedError if the producer has a defect that another case
// reports, otherwise nil. With this defect, several sends of one event cannot be compared.
// The error names the other case.
func (e *evidence) defectElsewhere() error {
	for _, m := range slices.Concat(e.first, e.second) {
		if !canonicaljson.IsCanonical([]byte(m.Body)) {
			return &notJudgedError{"the bodies are not canonical, see Canonical Form"}
		}
		if m.DeduplicationID != bodyHash(m.Body) {
			return &notJudgedError{"the body does not decide, see Hash Behavior"}
		}
	}
	if e.stableAtOnce() != nil {
		return &notJudgedError{"the body differs with each send, see Replay Window Collision"}
	}
	for i, m := range e.first {
		if sameMessage(m, e.later[i]) != nil {
			return &notJudgedError{"the body differs with time, see Determinism Over Time"}
		}
	}
	return e.pairs(func(i, j int) error {
		if e.first[i].Body == e.first[j].Body {
			return &notJudgedError{"two events have one body, see Distinct Events Never Collapse and Attribute Ignorance"}
		}
		return nil
	})
}

func envelopeContract(e *evidence) error {
	for what, m := range e.allMessages {
		for _, f := range lint.Check(e.lintMessage(m)) {
			if f.Rule != attrOnlyIdentity && !slices.Contains(canonicalRules, f.Rule) && f.Severity == lint.Error {
				return fmt.Errorf("%s: %s\n  body %s", what, f, m.Body)
			}
		}
	}
	return nil
}

func canonicalForm(e *evidence) error {
	for what, m := range e.allMessages {
		for _, f := range lint.Check(e.lintMessage(m)) {
			if slices.Contains(canonicalRules, f.Rule) {
				return fmt.Errorf("%s: %s\n%s", what, f, difference(m.Body, normal(m.Body)))
			}
		}
	}
	return nil
}

func determinismOverTime(e *evidence) error {
	if e.stableAtOnce() != nil {
		return &notJudgedError{"the body differs with each send, see Replay Window Collision"}
	}
	for i, m := range e.first {
		if err := sameMessage(m, e.later[i]); err != nil {
			return fmt.Errorf("event %d, sent again an hour later, is another message: a clock reading is in it; %w", i, err)
		}
	}
	return nil
}

// afterEachOther sends two messages to a new queue and reports whether the queue suppressed
// the second.
func afterEachOther(a, b sqstest.Message) (suppressed bool, err error) {
	q, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		return false, err
	}
	for _, m := range []sqstest.Message{a, b} {
		_, err := q.SendMessage(context.Background(), &sqs.SendMessageInput{
			QueueUrl: aws.String(q.URL()), MessageBody: &m.Body, MessageGroupId: &m.GroupID, MessageAttributes: m.Attributes,
		})
		if err != nil {
			return false, err
		}
	}
	return len(q.Suppressed()) == 1, nil
}

// pairs calls f for each pair of events until f returns an error.
func (e *evidence) pairs(f func(i, j int) error) error {
	for j := range e.first {
		for i := range j {
			if err := f(i, j); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameMessage returns an error if a and b have different message groups or different bodies
// in canonical form. The case "Canonical Form" checks the exact bytes.
func sameMessage(a, b sqstest.Message) error {
	x, y := normal(a.Body), normal(b.Body)
	switch {
	case x != y:
		return errors.New(difference(x, y))
	case a.GroupID != b.GroupID:
		return fmt.Errorf("its message group was %q and is %q", a.GroupID, b.GroupID)
	}
	return nil
}

// normal returns the canonical form of a body. If the body has no canonical form,
// normal returns the body itself.
func normal(body string) string {
	out, err := canonicaljson.Canonicalize([]byte(body))
	if err != nil {
		return body
	}
	return string(out)
}

// bodyHash returns the deduplication ID that a queue with content-based deduplication
// gives the body (F-011).
func bodyHash(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

func dedupeKey(body string) string { return members(body).DedupeKey }

// organization returns the first label of the body's event_source.
func organization(body string) string {
	label, _, _ := strings.Cut(members(body).EventSource, ".")
	return label
}

// members returns the identifying members of an envelope. A body without them has empty
// ones; the case "Envelope Contract" reports it.
func members(body string) (e struct {
	DedupeKey   string `json:"dedupe_key"`
	EventSource string `json:"event_source"`
},
) {
	_ = json.Unmarshal([]byte(body), &e)
	return e
}

// withDedupeKey returns the body with another dedupe_key, in canonical form.
func withDedupeKey(body, key string) (string, error) {
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(body), &members); err != nil {
		return "", fmt.Errorf("the body is not a JSON object: %w", err)
	}
	if _, ok := members["dedupe_key"]; !ok {
		return "", errors.New("the body has no dedupe_key")
	}
	quoted, err := canonicaljson.Marshal(key)
	if err != nil {
		return "", err
	}
	members["dedupe_key"] = quoted
	out, err := canonicaljson.Marshal(members)
	return string(out), err
}

func (e *evidence) lintMessage(m sqstest.Message) lint.Message {
	out := lint.Message{Organization: e.organization, Body: m.Body, GroupID: m.GroupID, DeduplicationID: m.DeduplicationID, Attributes: map[string]lint.Attribute{}}
	for name, v := range m.Attributes {
		out.Attributes[name] = lint.Attribute{DataType: aws.ToString(v.DataType), StringValue: aws.ToString(v.StringValue), BinaryValue: v.BinaryValue}
	}
	return out
}

// attributeText lists the attributes that may distinguish events, sorted.
func attributeText(m sqstest.Message) string {
	var out []string
	for name, v := range m.Attributes {
		if !lint.NeverIdentifies(name) {
			out = append(out, fmt.Sprintf("%s=%q", name, aws.ToString(v.StringValue)+string(v.BinaryValue)))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func sameAttributes(a, b sqstest.Message) bool { return attributeText(a) == attributeText(b) }

func reasons(ss []sqstest.Suppression) string {
	var b strings.Builder
	for _, s := range ss {
		b.WriteString("\n  " + s.String())
	}
	return b.String()
}

// difference returns the parts of a and b around their first different byte, and marks
// this byte.
func difference(a, b string) string {
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	member := ""
	var x, y any
	if json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil {
		if pointer, _, _ := jsondiff.First("", x, y); pointer != "" {
			member = "the member " + pointer + " differs; "
		}
	}
	const before, after = 40, 60
	from := max(at-before, 0)
	cut := func(s string) string {
		if from >= len(s) {
			return ""
		}
		return s[from:min(at+after, len(s))]
	}
	return fmt.Sprintf("%sthe first byte that differs is number %d:\n  %q\n  %q\n  %s^", member, at, cut(a), cut(b), strings.Repeat(" ", len(fmt.Sprintf("%q", a[from:at]))-1))
}
