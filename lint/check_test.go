package lint_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

func TestCheckByRule(t *testing.T) {
	for _, c := range cases {
		for _, bad := range c.bad {
			t.Run(c.rule+"/bad/"+bad.name, func(t *testing.T) {
				got := lint.Check(bad.message)
				require.Len(t, got, 1, "%v", got)
				f := got[0]
				rule, _ := lint.Lookup(c.rule)
				assert.Equal(t, c.rule, f.Rule)
				assert.Equal(t, rule.Severity, f.Severity)
				assert.Equal(t, bad.field, f.Field)
				assert.Equal(t, bad.pointer, f.Pointer)
				assert.Equal(t, bad.offset, f.Offset)
				assert.Contains(t, f.Message, bad.says)
				assert.Equal(t, rule.Fix, f.Fix)
				assert.NotContains(t, f.Message, "\n")
				assert.Less(t, len(f.Message), 1000, "a finding goes into logs")
			})
		}
		for _, good := range c.good {
			t.Run(c.rule+"/good/"+good.name, func(t *testing.T) {
				assert.Empty(t, lint.Check(good.message))
			})
		}
	}
}

func TestEveryRuleHasCases(t *testing.T) {
	covered := map[string]bool{}
	for _, c := range cases {
		_, known := lint.Lookup(c.rule)
		assert.True(t, known, "%s is no rule", c.rule)
		covered[c.rule] = len(c.bad) > 0 && len(c.good) > 0
	}
	for _, c := range streamCases {
		covered[c.rule] = covered[c.rule] || len(c.bad) > 0
	}
	for _, r := range lint.Rules() {
		if r.Passes.Has(lint.OnMessage) || r.Passes.Has(lint.OnStream) {
			assert.True(t, covered[r.ID], "%s %s has no bad or no good case", r.ID, r.Name)
		}
	}
}

func TestCheckReportsAllThatIsWrong(t *testing.T) {
	m := lint.Message{
		Body:            `{"b":9007199254740993,"a":"` + "\uffff" + `"}`,
		Attributes:      map[string]lint.Attribute{"unique_key": text("x"), "event_id": text("y"), "a b": {}},
		DeduplicationID: " ",
		DelaySeconds:    5,
		MaxSize:         10,
	}
	var got []string
	for _, f := range lint.Check(m) {
		got = append(got, f.Rule+" "+f.Field)
	}
	assert.Equal(t, []string{
		`SF001 MessageAttributes["event_id"]`,
		`SF001 MessageAttributes["unique_key"]`,
		"SF009 MessageGroupId",
		"SF010 MessageDeduplicationId",
		"SF011 DelaySeconds",
		"SF032 MessageBody",
		"SF040 MessageBody", // a member is missing, and one is unknown
		"SF050 MessageBody",
		"SF051 MessageBody",
		`SF053 MessageAttributes["a b"]`, // wrong name
		`SF053 MessageAttributes["a b"]`, // wrong type
		`SF053 MessageAttributes["a b"]`, // wrong value
	}, got)
}

func TestCheckIsSafeForConcurrentUse(t *testing.T) {
	m := cases[0].bad[0].message
	want := lint.Check(m)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				assert.Equal(t, want, lint.Check(m))
			}
		})
	}
	group.Wait()
}

// Check must be cheap: a producer checks each message before the send.
func TestCheckOfAnOrdinaryMessageAllocatesLittle(t *testing.T) {
	m := attribute("traceparent", text("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { lint.Check(m) }), 10.0)
}

func TestSizeCountsAsSQSDoes(t *testing.T) {
	tests := []struct {
		name    string
		message lint.Message
		want    int
	}{
		{"empty", lint.Message{}, 0},
		{"body in UTF-8", lint.Message{Body: "é🙂"}, 6},
		{"name, type and value", lint.Message{Body: "b", Attributes: map[string]lint.Attribute{"tag": text("one")}}, 1 + 3 + 6 + 3},
		{"type with its suffix", lint.Message{Attributes: map[string]lint.Attribute{"n": {DataType: "Number.float", StringValue: "1"}}}, 1 + 12 + 1},
		{"binary before base64", lint.Message{Attributes: map[string]lint.Attribute{"bin": {DataType: "Binary", BinaryValue: make([]byte, 100)}}}, 3 + 6 + 100},
		{"IDs do not count", lint.Message{Body: "b", GroupID: "g", DeduplicationID: "d"}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, lint.Size(test.message))
		})
	}
}

func TestFindingString(t *testing.T) {
	f := lint.Finding{Rule: "SF042", Field: "MessageBody", Pointer: "/event_id", Offset: 40, Message: "wrong", Fix: "mend it"}
	assert.Equal(t, "SF042 error: MessageBody /event_id (byte 40): wrong; fix: mend it", f.String())
	f = lint.Finding{Rule: "SF040", Field: "MessageBody", Message: "wrong"}
	assert.Equal(t, "SF040 error: MessageBody (byte 0): wrong", f.String())
	f = lint.Finding{Rule: "SF009", Severity: lint.Info, Field: "MessageGroupId", Offset: -1, Message: "wrong"}
	assert.Equal(t, "SF009 info: MessageGroupId: wrong", f.String())
}

func TestFindingsDoNotEchoAtLength(t *testing.T) {
	m := lint.Message{
		Body:            strings.Repeat("body\n", 1<<16),
		GroupID:         strings.Repeat("\x00", 1<<16),
		DeduplicationID: strings.Repeat("\x80", 1<<16), // invalid UTF-8: the text has no boundary between two characters at which to cut
		Attributes: map[string]lint.Attribute{
			strings.Repeat("\xffname", 1<<16) + "_uuid": {DataType: strings.Repeat("type", 1<<16), StringValue: strings.Repeat("value", 1<<16)},
		},
	}
	got := lint.Check(m)
	assert.Greater(t, len(got), 3)
	for _, f := range got {
		assert.Less(t, len(f.String()), 4000, f.Rule)
		assert.NotContains(t, f.String(), "\n", f.Rule)
	}
}

func TestUnknownMembersAreNamedUpToALimit(t *testing.T) {
	for members, want := range map[string]bool{`"0":0,"1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0`: false, `"0":0,"1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0`: true} {
		got := ofRule("SF040", lint.Check(body(`{"dedupe_key"`, `{`+members+`,"dedupe_key"`)))
		require.Len(t, got, 1)
		assert.Contains(t, got[0].Message, `"7"`)
		assert.Equal(t, want, strings.HasSuffix(got[0].Message, " and 1 more"))
		assert.Equal(t, want, strings.Contains(got[0].Message, "more"))
	}
}

// A raw control character in a string is refused by SQS and by the grammar of JSON. The
// finding shows the first such character.
func TestCheckFindsTheFirstRefusedCharacter(t *testing.T) {
	for text, want := range map[string]int{"\x00": 0, "\t\n\r \x1f\x00": 4, "\xff\x0b": 1} {
		got := ofRule("SF051", lint.Check(lint.Message{Body: text, GroupID: "g"}))
		require.Len(t, got, 1, "%q", text)
		assert.Equal(t, want, got[0].Offset, "%q", text)
	}
}

// A finding quotes a body unchanged if the body is one readable line. It quotes any other
// body as a Go string.
func TestFindingsQuoteBodiesThatDoNotPrint(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":"é"}`:        `the body {"a":"é"}, so`,
		"{\"a\":\n1}":      `the body "{\"a\":\n1}", so`,
		"{\"a\":\"\xff\"}": `the body "{\"a\":\"\xff\"}", so`,
	} {
		got := ofRule("SF001", lint.Check(lint.Message{Body: text, Attributes: map[string]lint.Attribute{"event_id": {DataType: "String", StringValue: "x"}}}))
		require.Len(t, got, 1, text)
		assert.Contains(t, got[0].Message, want)
	}
}

// CheckBody returns the findings of Check about the body, except findings about the size of
// the message.
func TestCheckBodyAgreesWithCheck(t *testing.T) {
	for _, c := range cases {
		for _, bad := range c.bad {
			want := slices.DeleteFunc(lint.Check(bad.message), func(f lint.Finding) bool { return f.Field != "MessageBody" || f.Rule == "SF050" })
			assert.ElementsMatch(t, want, lint.CheckBody(bad.message.Body), "%s %s", c.rule, bad.name)
		}
	}
}
