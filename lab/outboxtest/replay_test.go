package outboxtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
)

// archive returns an outbox whose archive has 1,203 sent messages, one message resolved by
// hand and one discarded message.
func archive(t *testing.T, d database) (*outbox.Outbox, database) {
	box, db := d.box(t, func(c *outbox.Config) { c.Sent = outbox.SentArchive })
	q := newQueue(t)
	for g := range 3 {
		addMany(t, box, db, fmt.Sprint("g", g), 401)
	}
	_, stop := start(t, box, newProducer(t, q, q.URL()), func(c *outbox.RelayConfig) { c.GroupRows = 500 })
	eventually(t, "the outbox is empty", empty(t, box))
	stop()
	addMany(t, box, db, "settled", 1)
	addMany(t, box, db, "discarded", 1)
	require.NoError(t, box.Resolve(t.Context(), "settled", 1, idempotency.ResolutionTookEffect))
	require.NoError(t, box.Resolve(t.Context(), "discarded", 1, idempotency.ResolutionGiveUp))
	return box, d
}

func TestArchived(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, d := archive(t, d)
		var all []outbox.ArchivedRow
		var places []outbox.RowPlace
		last := outbox.RowPlace{}
		for r, err := range box.Archived(t.Context()) {
			require.NoError(t, err)
			require.NoError(t, r.Err)
			assert.True(t, r.Group > last.Group || r.Group == last.Group && r.Position == last.Position+1, "%v after %v", r.RowPlace, last)
			assert.Equal(t, sqsfifo.BodyHash(r.Message.Body), r.BodyHash)
			assert.False(t, r.Added.After(r.Left))
			last = r.RowPlace
			all, places = append(all, r), append(places, r.RowPlace)
		}
		require.Len(t, all, 1205)
		assert.Equal(t, outbox.OutcomeDiscarded, all[0].Outcome)
		assert.Equal(t, outbox.OutcomeSent, all[1].Outcome)
		assert.NotEmpty(t, all[1].MessageID)
		assert.NotEmpty(t, all[1].SequenceNumber)
		assert.Equal(t, outbox.OutcomeAssumedSent, all[1204].Outcome)
		places = append(places, outbox.RowPlace{Group: "none", Position: 1}, places[5])
		at, err := box.ArchivedAt(t.Context(), places)
		require.NoError(t, err)
		assert.Equal(t, append(append([]outbox.ArchivedRow(nil), all...), outbox.ArchivedRow{}, all[5]), at)
		none, err := box.ArchivedAt(t.Context(), nil)
		require.NoError(t, err)
		assert.Empty(t, none)

		_, err = d.open(t).Exec(`UPDATE outbox_archive SET message = $1 WHERE message_group = 'g0' AND position = 1`, []byte("{"))
		require.NoError(t, err)
		at, err = box.ArchivedAt(t.Context(), []outbox.RowPlace{{Group: "g0", Position: 1}})
		require.NoError(t, err)
		require.Error(t, at[0].Err)
		assert.Nil(t, at[0].Message)
	})
}

// An archive is replayed after an hour: the queue gets the sent messages again, byte for
// byte and in order. A changed row stops its group.
func TestReplayOfAnArchive(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, d := archive(t, d)
		s := replay.NewArchive("archive", box)
		db := d.open(t)
		exec := func(statement string, args ...any) {
			_, err := db.Exec(statement, args...)
			require.NoError(t, err)
		}
		var good []byte
		require.NoError(t, db.QueryRow(`SELECT message FROM outbox_archive WHERE message_group = 'g1' AND position = 100`).Scan(&good))
		exec(`UPDATE outbox_archive SET message = $1 WHERE message_group = 'g1' AND position = 100`, []byte(strings.ReplaceAll(string(good), "g1-0099", "g1-xxxx")))

		now := time.Now()
		plan, err := replay.NewPlan(t.Context(), s, replay.Options{}, now)
		require.NoError(t, err)
		counts := map[string]int{}
		for _, it := range plan.Items {
			counts[string(it.Action)+" "+it.Reason]++
		}
		assert.Equal(t, map[string]int{"skip delivered": 1203, "send ": 1, "skip discarded": 1}, counts, "the message assumed sent is in doubt, and inside the window")

		later := func() time.Time { return now.Add(time.Hour) }
		plan, err = replay.NewPlan(t.Context(), s, replay.Options{Redeliver: true}, later())
		require.NoError(t, err)
		store := new(idempotency.Memory)
		q := newQueue(t)
		p := newProducer(t, q, q.URL())
		run := func(giveUp ...int) replay.PlanReport {
			report, err := replay.Run(t.Context(), plan, replay.Config{Source: s, Sender: p, Store: store, Now: later, GiveUp: giveUp})
			require.NoError(t, err)
			return report
		}
		report := run()
		assert.Equal(t, []int{901, 302, 1, 1}, []int{report.Sent, report.Skipped, report.Drift, report.Unresolved})
		exec(`UPDATE outbox_archive SET message = $1 WHERE message_group = 'g1' AND position = 100`, good)
		exec(`DELETE FROM outbox_archive WHERE message_group = 'g1' AND position = 300`)
		report = run()
		assert.Equal(t, []int{1101, 1}, []int{report.Sent, report.Failed}, "a row was purged")
		report = run(stoppedAt(t, plan, store, replay.OutcomeFailed))
		assert.Equal(t, 1202, report.Sent)
		got := sent(t, q)
		for g := range 3 {
			name := fmt.Sprint("g", g)
			var want []string
			for i := range 401 {
				if name != "g1" || i != 299 {
					want = append(want, fmt.Sprintf("%s-%04d", name, i))
				}
			}
			assert.Equal(t, want, got[name])
		}
		assert.NotContains(t, got, "settled")
		assert.NotContains(t, got, "discarded")
	})
}

// stoppedAt returns the index in the plan of the item with the outcome o.
func stoppedAt(t *testing.T, plan *replay.Plan, j idempotency.Store, o replay.Outcome) int {
	t.Helper()
	_, results, err := replay.ReadReport(t.Context(), plan, j, time.Now())
	require.NoError(t, err)
	for _, r := range results {
		if r.Outcome == o {
			return r.Item.Number
		}
	}
	t.Fatalf("no item is %v", o)
	return 0
}
