package timeline

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

var noon = time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC)

func contentsOf(t *testing.T, r *Recorder, o Options) (c contents, text string) {
	t.Helper()
	var b strings.Builder
	require.NoError(t, r.Write(&b, o))
	text = b.String()
	_, after, ok := strings.Cut(text, `id="data">`)
	require.True(t, ok)
	data, _, ok := strings.Cut(after, "</script>")
	require.True(t, ok)
	require.NoError(t, json.Unmarshal([]byte(data), &c))
	return c, text
}

// unpack decodes the rows, as the page's data.js does.
func unpack(t *testing.T, c contents) []row {
	t.Helper()
	reader := func(text string) func() uint64 {
		raw, err := base64.StdEncoding.DecodeString(text)
		require.NoError(t, err)
		return func() uint64 {
			v, n := binary.Uvarint(raw)
			require.Positive(t, n)
			raw = raw[n:]
			return v
		}
	}
	signed := func(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
	flags, err := base64.StdEncoding.DecodeString(c.Rows.Flags)
	require.NoError(t, err)
	ids, err := base64.StdEncoding.DecodeString(c.Rows.ID)
	require.NoError(t, err)
	number, at, group, of, other := reader(c.Rows.Number), reader(c.Rows.At), reader(c.Rows.Group), reader(c.Rows.Of), reader(c.Rows.Other)
	errors, source, line := reader(c.Rows.Errors), reader(c.Rows.Source), reader(c.Rows.Line)
	lines := make([]int32, len(c.Rows.Sources))
	last, when := 0, c.Begin
	var out []row
	for i := range c.Rows.Count {
		last++
		if !c.Complete {
			last += int(number())
		}
		when += int64(at())
		m := row{number: last, at: when, group: uint32(group()), flags: flags[i]}
		switch {
		case m.flags&flagRefused != 0:
			m.errors = c.Rows.Texts[errors()]
		case m.flags&flagSuppressed != 0:
			m.original = last - int(of())
		case m.flags&flagOtherID != 0:
			v, n := binary.Uvarint(ids)
			m.id, ids = c.Rows.Names[v], ids[n:]
		default:
			m.id, ids = hex.EncodeToString(ids[:8]), ids[8:]
		}
		if m.flags&flagCollides != 0 {
			m.collision = last - int(other())
		}
		s := source()
		lines[s] += int32(signed(line()))
		m.place = Place{File: c.Rows.Sources[s].File, Replay: c.Rows.Sources[s].Replay, Line: lines[s]}
		out = append(out, m)
	}
	return out
}

func someMessages(seed uint64, n int) []Message {
	rng := rand.New(rand.NewPCG(seed, seed))
	var out []Message
	at := noon
	for i := range n {
		at = at.Add(time.Duration(rng.IntN(2000)) * time.Millisecond)
		m := Message{
			At: at, Group: fmt.Sprint("group ", rng.IntN(20)),
			Place:   Place{File: int32(rng.IntN(2)), Replay: int32(rng.IntN(3) / 2), Line: int32(rng.IntN(1_000_000))},
			Outcome: sqstest.Outcome{Result: sqstest.ResultDelivered, Of: -1, Collides: -1, DeduplicationID: fmt.Sprintf("%064x", rng.Uint64())},
		}
		switch chance := rng.IntN(20); {
		case chance == 0:
			m.Outcome.Result, m.Outcome.Err = sqstest.ResultRefused, fmt.Errorf("MissingParameter: no %d", i%3)
		case chance < 6 && i > 0:
			m.Outcome.Result, m.Outcome.Of = sqstest.ResultSuppressed, i-1-rng.IntN(min(i, 100))
			if chance == 1 {
				m.Outcome.Lost = []string{"attributes", "group", "body"}[rng.IntN(3):][:1]
			}
		case chance == 6:
			m.Outcome.DeduplicationID = fmt.Sprint("named ", i)
		}
		if rng.IntN(30) == 0 && i > 0 {
			m.Outcome.Collides = rng.IntN(i)
		}
		out = append(out, m)
	}
	return out
}

// For random messages, the decoded columns equal the recorded messages.
func TestColumns(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	messages := someMessages(seed, 3000)
	r := NewRecorder()
	for _, m := range messages {
		r.Add(m)
	}
	c, _ := contentsOf(t, r, Options{Files: []string{"a", "b"}})
	assert.True(t, c.Complete)
	assert.Equal(t, len(messages), c.Messages)
	got := unpack(t, c)
	require.Len(t, got, len(messages))
	kinds := make([]int, kindCount)
	for i, m := range messages {
		g := got[i]
		assert.Equal(t, i+1, g.number)
		assert.Equal(t, m.At.UnixMilli(), g.at)
		assert.Equal(t, m.Group, c.Groups[g.group])
		assert.Equal(t, m.Place, g.place)
		assert.Equal(t, flagsOf(m), g.flags&^flagOtherID)
		assert.Equal(t, m.Outcome.Of+1, g.original)
		assert.Equal(t, m.Outcome.Collides+1, g.collision)
		switch {
		case m.Outcome.Err != nil:
			assert.Equal(t, m.Outcome.Err.Error(), g.errors)
		case m.Outcome.Result == sqstest.ResultDelivered && isHash(m.Outcome.DeduplicationID):
			assert.Equal(t, m.Outcome.DeduplicationID[:16], g.id)
		case m.Outcome.Result == sqstest.ResultDelivered:
			assert.Equal(t, m.Outcome.DeduplicationID, g.id)
		}
		kinds[KindOf(m.Outcome, m.Place.Replay > 0)]++
	}
	assert.Equal(t, kinds, c.Kinds)
	perKind := make([]int, kindCount)
	for _, cause := range c.Causes {
		perKind[cause.Kind] += cause.Count
	}
	assert.Equal(t, kinds[:Duplicate], perKind[:Duplicate], "each finding has a cause")
}

// The HTML file for 100,000 messages has about 20 bytes for each message.
func TestSize(t *testing.T) {
	r := NewRecorder()
	messages := someMessages(1, 10_000)
	for _, m := range messages {
		m.Place.Line = int32(r.count)
		r.Add(m)
	}
	c, _ := contentsOf(t, r, Options{})
	size, err := json.Marshal(c.Rows)
	require.NoError(t, err)
	assert.Less(t, len(size)/len(messages), 24)
}

// For more than MaxMessages messages (1,000 in this test), the page has only the counts
// of all messages, and the findings with their related messages. The recorder's memory
// stops growing.
func TestBeyondTheBound(t *testing.T) {
	messages := someMessages(2, 20_000)
	r := NewRecorder()
	r.maxMessages = 1000
	for _, m := range messages {
		r.Add(m)
	}
	c, _ := contentsOf(t, r, Options{Files: []string{"a", "b"}})
	assert.False(t, c.Complete)
	assert.Equal(t, len(messages), c.Messages)
	got := unpack(t, c)
	assert.Less(t, len(got), len(messages))
	byNumber := map[int]row{}
	for i, g := range got {
		if i > 0 {
			assert.Greater(t, g.number, got[i-1].number)
		}
		byNumber[g.number] = g
	}
	for i, m := range messages {
		kind := KindOf(m.Outcome, m.Place.Replay > 0)
		g, is := byNumber[i+1]
		if kind.isFinding() {
			require.True(t, is, "finding %d is missing", i)
			assert.Equal(t, flagsOf(m), g.flags&^flagOtherID)
			if m.Outcome.Of >= 0 {
				original, ok := byNumber[m.Outcome.Of+1]
				require.True(t, ok, "the original of %d", i)
				assert.Equal(t, messages[m.Outcome.Of].At.UnixMilli(), original.at)
				assert.Equal(t, messages[m.Outcome.Of].Place, original.place)
			}
		}
		if is {
			assert.Equal(t, m.At.UnixMilli(), g.at)
			assert.Equal(t, m.Group, c.Groups[g.group])
		}
	}

	// A page has at most MaxFindings findings of each kind, but the counts include all.
	r = NewRecorder()
	r.maxMessages = 10
	const many = 4 * MaxFindings
	for i := range many {
		m := messages[0]
		m.At = noon.Add(time.Duration(i) * time.Minute)
		m.Group = fmt.Sprint(i)
		m.Outcome = sqstest.Outcome{Result: sqstest.ResultRefused, Of: -1, Collides: -1, Err: fmt.Errorf("bad: %d", i)}
		r.Add(m)
	}
	assert.LessOrEqual(t, len(r.kept), MaxFindings)
	assert.LessOrEqual(t, len(r.texts), MaxTexts)
	assert.Len(t, r.causes, 1)
	assert.Nil(t, r.all)
	c, _ = contentsOf(t, r, Options{})
	assert.Equal(t, many, c.Kinds[Refused])
	assert.Equal(t, many, c.Causes[0].Count)
}

func TestGroupsShareALane(t *testing.T) {
	r := NewRecorder()
	r.groups.most = 3
	for i := range 10 {
		r.Add(Message{At: noon, Group: fmt.Sprint(i), Outcome: sqstest.Outcome{Result: sqstest.ResultDelivered, Of: -1, Collides: -1}})
	}
	c, _ := contentsOf(t, r, Options{})
	assert.Equal(t, []string{"0", "1", "2", otherGroups}, c.Groups)
	assert.Equal(t, 7, r.groups.counts[3][Delivered])
}

// The bins count each message once, for any start and length of the log.
func TestBins(t *testing.T) {
	for _, step := range []time.Duration{0, time.Millisecond, 7 * time.Second, 10 * 24 * time.Hour} {
		b := bins{start: noon.UnixMilli()}
		for i := range 5000 {
			b.add(noon.Add(time.Duration(i)*step).UnixMilli(), Kind(i%int(kindCount)))
		}
		var sum uint32
		for kind := range b.counts {
			for _, n := range b.counts[kind] {
				sum += n
			}
		}
		assert.EqualValues(t, 5000, sum, step)
		last := noon.Add(4999 * step).UnixMilli()
		assert.Less(t, (last-b.start)/b.width, int64(binCount))
		if step > 0 {
			assert.GreaterOrEqual(t, (last-b.start)/b.width, int64(binCount/2), "no wider than they have to be")
		}
	}
}

func TestKinds(t *testing.T) {
	suppressed := sqstest.Outcome{Result: sqstest.ResultSuppressed, Of: 0, Collides: -1}
	delivered := sqstest.Outcome{Result: sqstest.ResultDelivered, Of: -1, Collides: -1}
	with := func(o sqstest.Outcome, change func(*sqstest.Outcome)) sqstest.Outcome { change(&o); return o }
	for _, tc := range []struct {
		outcome sqstest.Outcome
		replay  int32
		want    Kind
	}{
		{delivered, 0, Delivered},
		{delivered, 1, Again},
		{suppressed, 0, Duplicate},
		{suppressed, 1, Duplicate},
		{with(suppressed, func(o *sqstest.Outcome) { o.Lost = []string{"group"} }), 1, Lost},
		{with(suppressed, func(o *sqstest.Outcome) { o.Lost, o.Collides = []string{"body"}, 3 }), 0, Lost},
		{with(delivered, func(o *sqstest.Outcome) { o.Collides = 3 }), 1, Bodies},
		{sqstest.Outcome{Result: sqstest.ResultRefused, Of: -1, Collides: -1}, 1, Refused},
	} {
		assert.Equal(t, tc.want, KindOf(tc.outcome, tc.replay > 0), "%+v", tc)
	}
}

// The page ignores messages in Options.Texts that do not belong to findings. With nil Texts
// it has no bodies and attributes.
func TestTexts(t *testing.T) {
	r := NewRecorder()
	add := func(at time.Duration, line int32, o sqstest.Outcome) {
		r.Add(Message{At: noon.Add(at), Group: "g", Place: Place{Line: line}, Outcome: o})
	}
	add(0, 1, sqstest.Outcome{Result: sqstest.ResultDelivered, Of: -1, Collides: -1})
	add(time.Second, 2, sqstest.Outcome{Result: sqstest.ResultDelivered, Of: -1, Collides: -1})
	add(2*time.Second, 3, sqstest.Outcome{Result: sqstest.ResultSuppressed, Of: 1, Collides: -1, Lost: []string{"attributes"}})
	add(3*time.Second, 4, sqstest.Outcome{Result: sqstest.ResultSuppressed, Of: 0, Collides: -1})
	assert.Equal(t, []Place{{Line: 2}, {Line: 3}}, r.Wanted())
	texts := map[Place]sqstest.TimedMessage{}
	for line := range int32(4) {
		texts[Place{Line: line + 1}] = sqstest.TimedMessage{Body: fmt.Sprint("secret ", line+1), Attributes: map[string]string{"k": fmt.Sprint(line + 1)}}
	}
	c, _ := contentsOf(t, r, Options{Texts: texts})
	require.Len(t, c.Texts, 1)
	assert.Equal(t, 3, c.Texts[0].Number)
	assert.Equal(t, 2, c.Texts[0].Related)
	assert.Equal(t, 7, c.Texts[0].Body.Byte)
	assert.Equal(t, []string{`k is "3" instead of "2"`}, c.Texts[0].Attributes)
	_, text := contentsOf(t, r, Options{})
	assert.NotContains(t, text, "secret")
}

// A log may contain hostile texts. The page shows markup as text, so a hostile text
// cannot end an HTML element or add a script.
func TestHostileLog(t *testing.T) {
	const hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u202e"
	r := NewRecorder()
	r.Add(Message{At: noon, Group: hostile, Outcome: sqstest.Outcome{Result: sqstest.ResultRefused, Of: -1, Collides: -1, Err: fmt.Errorf("%s", hostile)}})
	r.Add(Message{At: noon, Group: hostile, Outcome: sqstest.Outcome{Result: sqstest.ResultDelivered, Of: -1, Collides: -1, DeduplicationID: hostile}})
	c, text := contentsOf(t, r, Options{Files: []string{hostile}})
	assert.Equal(t, hostile, c.Groups[0])
	assert.NotContains(t, text, "<img")
	assert.NotContains(t, text, "alert(1)</script>")
	assert.Equal(t, 2, strings.Count(text, "<script"))
}

// The page loads no resources and has no markup that its policy would block.
func TestPageLoadsNothing(t *testing.T) {
	var b strings.Builder
	require.NoError(t, NewRecorder().Write(&b, Options{}))
	text := strings.ReplaceAll(b.String(), "http://www.w3.org/2000/svg", "")
	for _, loads := range []string{"http:", "https:", " src=", "@import", "url(", "fetch(", " style=", " onclick=", "innerHTML", "insertAdjacentHTML", "document.write", "eval("} {
		assert.NotContains(t, text, loads)
	}
}
