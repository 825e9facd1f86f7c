package outboxtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
)

// Outbox.Groups returns each group's number of messages and the age of the group's first
// message. If this message was possibly sent, Groups also returns the time of the first
// attempt. With a minimum age, Groups omits groups with a younger first message.
func TestGroups(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		groups, err := box.Groups(t.Context(), 0)
		require.NoError(t, err)
		assert.Empty(t, groups)

		var msgs []*sqsfifo.Message // more messages than one page of the listing holds
		for g := range 450 {
			msgs = append(msgs, build(t, fmt.Sprintf("%03d", g), fmt.Sprintf("g%03d", g)))
		}
		add(t, box, db, msgs...)
		addMany(t, box, db, "late", 7)
		addMany(t, box, db, "tried", 3)
		addMany(t, box, db, "broken", 2)
		long := func(group string, ago time.Duration) {
			_, err := db.Exec(`UPDATE outbox SET added_at = $1 WHERE message_group = $2`, time.Now().Add(-ago).UnixMicro(), group)
			require.NoError(t, err)
		}
		long("late", 2*time.Hour)
		long("tried", time.Hour)
		long("broken", 30*time.Minute)
		_, err = db.Exec(`UPDATE outbox SET message = $1 WHERE message_group = 'broken' AND position = 1`, []byte("{"))
		require.NoError(t, err)
		for group, ago := range map[string]time.Duration{"late": time.Hour, "tried": time.Minute} {
			_, err = db.Exec(`INSERT INTO outbox_attempts (message_group, from_position, to_position, first_attempt) VALUES ($1, 1, 2, $2)`, group, time.Now().Add(-ago).UnixMicro())
			require.NoError(t, err)
		}

		groups, err = box.Groups(t.Context(), 0)
		require.NoError(t, err)
		require.Len(t, groups, 453)
		total := int64(0)
		for _, g := range groups {
			total += g.Messages
		}
		assert.EqualValues(t, 462, total)
		stuck, err := box.Groups(t.Context(), 10*time.Minute)
		require.NoError(t, err)
		require.Len(t, stuck, 3)
		assert.Equal(t, groups[:3], withAges(stuck, groups[:3]), "the oldest come first")

		late, tried, broken := stuck[0], stuck[1], stuck[2]
		assert.Equal(t, "late", late.Group)
		assert.EqualValues(t, 7, late.Messages)
		assert.EqualValues(t, 1, late.Position)
		assert.Equal(t, "late-0000", late.DedupeKey)
		assert.Equal(t, build(t, "late-0000", "late").EventID, late.EventID)
		assert.True(t, late.Late())
		assert.InDelta(t, 2*time.Hour, late.Age, float64(time.Minute))
		assert.InDelta(t, time.Now().Add(-time.Hour).Unix(), late.FirstAttempt.Unix(), 60)

		assert.Equal(t, "tried", tried.Group)
		assert.False(t, tried.Late())
		assert.InDelta(t, outbox.DefaultResendFor-time.Minute, tried.LateIn, float64(time.Minute))

		assert.Equal(t, "broken", broken.Group)
		assert.Empty(t, broken.DedupeKey)
		assert.Zero(t, broken.FirstAttempt)
		assert.False(t, broken.Late())

		// A resolved message leaves the outbox. The next message of its group becomes
		// first.
		require.NoError(t, box.Resolve(t.Context(), late.Group, late.Position, idempotency.ResolutionTookEffect))
		require.ErrorIs(t, box.Resolve(t.Context(), tried.Group, tried.Position, idempotency.ResolutionTookEffect), outbox.ErrUnderWay)
		require.NoError(t, box.Resolve(t.Context(), broken.Group, broken.Position, idempotency.ResolutionGiveUp))
		stuck, err = box.Groups(t.Context(), 10*time.Minute)
		require.NoError(t, err)
		require.Len(t, stuck, 3)
		assert.EqualValues(t, 2, stuck[0].Position)
		assert.True(t, stuck[0].Late())
		assert.EqualValues(t, 2, stuck[2].Position)
		assert.NotEmpty(t, stuck[2].DedupeKey)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = box.Groups(ctx, 0)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// withAges returns a copy of groups, with the fields Age and LateIn copied from the
// parameter `other`. These fields differ between two reads, so a comparison must ignore them.
func withAges(groups, other []outbox.GroupStats) []outbox.GroupStats {
	out := append([]outbox.GroupStats(nil), groups...)
	for i := range out {
		out[i].Age, out[i].LateIn = other[i].Age, other[i].LateIn
	}
	return out
}
