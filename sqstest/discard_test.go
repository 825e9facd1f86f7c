package sqstest_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// A queue that discards what was deleted answers and explains a duplicate as
// any other, as far as the window remembers.
func TestDiscardDeleted(t *testing.T) {
	bothDoors(t, sqstest.Config{DiscardDeleted: true}, func(d desk) {
		sent := time.Now()
		first := d.send(msg{body: "deleted", group: "g"})
		held := d.receive(1)
		d.delete(held...)
		const many = 3000 // more than are looked over for one deleted message
		var last string
		for i := range many {
			last = strconv.Itoa(i)
			d.send(msg{body: last, group: "g"})
			d.delete(d.receive(1)...)
		}
		d.send(msg{body: "stays", group: "g"})
		assert.Equal(d, []string{"stays"}, d.stored())

		time.Sleep(time.Minute)
		d.original(first, d.send(msg{body: "deleted", group: "h"}))
		stays := d.send(msg{body: "stays", group: "h"})
		got := d.queue.Suppressed()
		require.Len(d, got, 2)
		assert.Equal(d, sqstest.Message{
			MessageID: *first.MessageId, SequenceNumber: *first.SequenceNumber, DeduplicationID: sha("deleted"), AcceptedAt: got[0].Original.AcceptedAt,
		}, got[0].Original)
		assert.True(d, got[0].Original.AcceptedAt.Equal(sent))
		assert.Equal(d, time.Minute, got[0].At.Sub(sent))
		assert.Equal(d, *stays.MessageId, got[1].Original.MessageID)
		assert.Equal(d, "stays", got[1].Original.Body)
		assert.ErrorContains(d, d.tryDelete(held[0]), "not a valid receipt handle")

		time.Sleep(interval)
		d.fresh(first, d.send(msg{body: "deleted", group: "g"}))
		d.send(msg{body: "deleted", group: "g"})
		assert.Len(d, d.queue.Suppressed(), 1, "the others are older than the interval")
	})
}
