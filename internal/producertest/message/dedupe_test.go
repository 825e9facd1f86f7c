package message

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Different lists of up to three parts have different keys. The parts consist of a
// letter, the separator and the escape character.
func TestJoinKeyIsUnambiguous(t *testing.T) {
	var words []string
	for _, a := range []string{"", "a", "|", `\`} {
		for _, b := range []string{"", "a", "|", `\`} {
			for _, c := range []string{"a", "|", `\`} {
				words = append(words, a+b+c)
			}
		}
	}
	seen := map[string]string{}
	check := func(parts ...string) {
		key, err := sqsfifo.JoinKey(parts...)
		require.NoError(t, err)
		name := fmt.Sprintf("%q", parts)
		if other, ok := seen[key]; ok && other != name {
			t.Fatalf("%s and %s share the key %s", name, other, key)
		}
		seen[key] = name
	}
	for _, a := range words {
		check(a)
		for _, b := range words {
			check(a, b)
			check(a, b, "a")
		}
	}
}

func TestJoinKeyRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, field, says string
		parts             []string
	}{
		{"nothing", "parts", "at least one", nil},
		{"empty part", "part 2", "empty", []string{"a", "", "c"}},
		{"not UTF-8", "part 1", "UTF-8", []string{"a\xff"}},
		{"control character", "part 2", "byte 1", []string{"a", "b\n"}},
		{"too long", "key", "1025 bytes", []string{strings.Repeat("k", 1025)}},
		{"too long by its escapes", "key", "1026 bytes", []string{strings.Repeat("|", 513)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := sqsfifo.JoinKey(tc.parts...)
			var refused *sqsfifo.InvalidError
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, tc.field, refused.Field)
			assert.Contains(t, refused.Rule, tc.says)
		})
	}
	_, err := sqsfifo.JoinKey(strings.Repeat("k", 1024))
	assert.NoError(t, err)
}

func TestDeriveEventID(t *testing.T) {
	at := time.Date(2025, 12, 4, 0, 0, 0, 123_999_999, time.UTC)
	base := sqsfifo.DeriveEventID("kfm.a.b", "key", at)

	assert.Equal(t, uuid.Version(7), base.Version())
	assert.Equal(t, uuid.RFC4122, base.Variant())
	ms := int64(base[0])<<40 | int64(base[1])<<32 | int64(base[2])<<24 | int64(base[3])<<16 | int64(base[4])<<8 | int64(base[5])
	assert.Equal(t, at.UnixMilli(), ms, "the timestamp is the event's")

	assert.Equal(t, base, sqsfifo.DeriveEventID("kfm.a.b", "key", at.In(time.FixedZone("CST", -6*3600))), "the instant counts, not the location")
	assert.NotEqual(t, base, sqsfifo.DeriveEventID("kfm.a.b", "key2", at))
	assert.NotEqual(t, base, sqsfifo.DeriveEventID("kfm.a.c", "key", at))
	assert.NotEqual(t, base, sqsfifo.DeriveEventID("kfm.a.b", "key", at.Add(time.Millisecond)))
	assert.NotEqual(t,
		sqsfifo.DeriveEventID("kfm.a.b", "ckey", at),
		sqsfifo.DeriveEventID("kfm.a.bc", "key", at), "the strings are kept apart")
}

// An event ID begins with a timestamp. The timestamp is 0 for each event before 1970, for
// example a storm of 1950, and the rest of the ID distinguishes these events.
func TestEventsBeforeTheUnixEpochHaveDistinctIDs(t *testing.T) {
	seen := map[uuid.UUID]bool{}
	day := time.Date(1950, 1, 3, 11, 0, 0, 0, time.UTC)
	for i := range 1000 {
		id := sqsfifo.DeriveEventID("kfm.hazards.storm-events", fmt.Sprintf("storm|%d", i), day)
		assert.Equal(t, uuid.Version(7), id.Version())
		assert.Equal(t, uuid.RFC4122, id.Variant())
		assert.True(t, strings.HasPrefix(id.String(), "00000000-0000-7"), "%v", id)
		assert.False(t, seen[id], "%v came twice", id)
		seen[id] = true
	}
}

// An event ID has 74 bits apart from the timestamp, version and variant. Each of these
// bits differs between some of the events.
func TestEventIDUsesAllFreeBits(t *testing.T) {
	var or, and uuid.UUID
	for i := range and {
		and[i] = 0xff
	}
	for i := range 2000 {
		id := sqsfifo.DeriveEventID("kfm.a.b", fmt.Sprint(i), time.Unix(0, 0))
		for j := range id {
			or[j] |= id[j]
			and[j] &= id[j]
		}
	}
	assert.Equal(t, "00000000-0000-7fff-bfff-ffffffffffff", or.String())
	assert.Equal(t, "00000000-0000-7000-8000-000000000000", and.String())
}
