package redisstore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

func TestNames(t *testing.T) {
	s := &Store{prefix: "shop:"}
	k := idempotency.Key{Scope: "tenant", Operation: "payments.create", Value: "k1"}
	n, digits := s.nameOf(k), k.ID().String()
	if want := "shop:idempotency:payments.create:{" + digits[:3] + "}" + digits[3:]; n.record != want {
		t.Errorf("got %s, want %s", n.record, want)
	}
	if want := "shop:idempotency-fence:{" + digits[:3] + "}"; n.fence != want {
		t.Errorf("got %s, want %s", n.fence, want)
	}
	odd := k
	odd.Operation = "a{b}%7D"
	if got, want := s.nameOf(odd).record, "shop:idempotency:a%7Bb%7D%257D:{"; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s and the ID: the first braces choose the slot", got, want)
	}
	if id, ok := idOf(n.record); !ok || id != k.ID() {
		t.Errorf("the ID in %s is %v, %v", n.record, id, ok)
	}
	for _, name := range []string{"", n.fence, strings.Replace(n.record, "}", "", 1), n.record + "0", strings.Replace(n.record, digits[3:5], "xx", 1)} {
		if _, ok := idOf(name); ok {
			t.Errorf("%q has an ID", name)
		}
	}
	if got := n.sequence(7<<bucketBits | n.bucket); got != "7" {
		t.Errorf("the sequence of a fence of the bucket is %s, want 7", got)
	}
	if got := n.sequence(7<<bucketBits | n.bucket ^ 1); got != "0" {
		t.Errorf("the sequence of a fence of another bucket is %s, want 0", got)
	}
}

func TestInOrder(t *testing.T) {
	a, b, c := place{id: idempotency.KeyID{1}, name: "x"}, place{id: idempotency.KeyID{1}, name: "y"}, place{id: idempotency.KeyID{2}, name: "a"}
	if got, want := inOrder([]place{c, b, a, c, b, a}), []place{a, b, c}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// For any answer of a script, even with fields written by another program, parseAnswer
// returns a record or an error. It never accepts an answer with the wrong number of
// values.
func FuzzParseAnswer(f *testing.F) {
	now := timeText(time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC))
	values := map[string]string{"scope": "s", "operation_type": "o", "key": "k", "generation": "1", "status": "in_progress", "fence": "1", "lease_until": now, "prior_status": "failed"}
	var seed []string
	for _, name := range fields {
		seed = append(seed, values[name])
	}
	seed = append(seed, now)
	f.Add("read", now, strings.Join(seed, "\x1f"))
	f.Add("made", "", "")
	f.Fuzz(func(t *testing.T, word, now, rest string) {
		in := []any{word, now}
		for _, v := range strings.Split(rest, "\x1f") {
			in = append(in, v)
		}
		for n := range len(in) + 1 {
			a, err := parseAnswer(in[:n])
			if err == nil && n != 1 && n != len(fields)+3 {
				t.Errorf("%d values were read as %+v", n, a)
			}
		}
		if a, err := parseAnswer(append(in, nil)); err == nil {
			t.Errorf("a nil was read as %+v", a)
		}
	})
}
