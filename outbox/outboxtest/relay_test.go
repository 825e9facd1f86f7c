package outboxtest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRelaySends(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		q := newQueue(t)
		want := map[string][]string{}
		for g := range 7 {
			name := fmt.Sprintf("g%d", g)
			addMany(t, box, db, name, 25)
			for i := range 25 {
				want[name] = append(want[name], fmt.Sprintf("%s-%04d", name, i))
			}
		}
		s, err := box.Stats(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 175, s.Messages)
		assert.EqualValues(t, 7, s.Groups)
		assert.Positive(t, s.OldestAge)
		r, stop := start(t, box, newProducer(t, q, q.URL()))
		eventually(t, "the outbox is empty", empty(t, box))
		stop()
		assert.Equal(t, want, sent(t, q))
		t.Logf("%+v", r.Stats())
	})
}
