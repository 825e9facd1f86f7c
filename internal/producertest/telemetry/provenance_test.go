package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// records returns a sink and a pointer to the slice of the sink's records.
func records() (sqsfifo.ProvenanceSink, *[]sqsfifo.ProvenanceRecord) {
	var got []sqsfifo.ProvenanceRecord
	return func(r sqsfifo.ProvenanceRecord) error {
		got = append(got, r)
		return nil
	}, &got
}

func TestProvenanceRecordsSayWhatBecameOfEachEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		sink, got := records()
		dataset := producertest.Storms
		dataset.ID, dataset.Version = " "+producertest.Storms.ID, strings.TrimPrefix(producertest.Storms.Version, "v") // another spelling of the same dataset
		dataset.CARELabel, dataset.ArtifactChecksum = "CARE-Compliant", "sha256:88bedf22ee"
		p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Telemetry.Provenance = sink
			c.Delivery.OnGroupFailure = sqsfifo.GroupFailureSkip
			c.Identify = func(s producertest.Scene) (sqsfifo.Identity, error) {
				if s.Cloud == 99 {
					return sqsfifo.Identity{}, errors.New("no identity")
				}
				id, err := producertest.Identify(s)
				id.Dataset = &dataset
				return id, err
			}
		})
		first, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		_, err = p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		_, err = p.Send(t.Context(), producertest.Scene{Cloud: 99})
		require.Error(t, err)
		q.Inject(sqstest.LoseAnswer(), 1000)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = p.Send(ctx, producertest.Scenes(1, 1)[0])
		require.Error(t, err)
		q.ClearFaults()
		require.NoError(t, p.Close(t.Context()))

		require.Len(t, *got, 4)
		stored, duplicate, refused, doubt := (*got)[0], (*got)[1], (*got)[2], (*got)[3]
		assert.Equal(t, sqsfifo.ProvenanceRecord{
			Time: stored.Time, Outcome: sqsfifo.ProvenanceStored,
			EventID: first.EventID.String(), EventSource: producertest.Source, DedupeKey: first.DedupeKey, MessageGroup: first.Group, BodyHash: first.BodyHash,
			MessageID: first.MessageID, SequenceNumber: first.SequenceNumber, Attempts: 1,
			DatasetID: producertest.Storms.ID, Version: producertest.Storms.Version, IdempotencyKey: producertest.StormsKey,
			ArtifactChecksum: "sha256:88bedf22ee", CARELabel: "CARE-Compliant",
		}, stored)
		assert.Equal(t, time.UTC, stored.Time.Location())
		assert.Equal(t, sqsfifo.ProvenanceDuplicate, duplicate.Outcome)
		assert.True(t, duplicate.DuplicateDetected)
		assert.True(t, duplicate.ReplayTriggered)
		assert.Equal(t, time.Minute, duplicate.Time.Sub(stored.Time))
		assert.Equal(t, sqsfifo.ProvenanceRecord{Time: refused.Time, Outcome: sqsfifo.ProvenanceNotStored, ErrorType: "identify"}, refused)
		assert.Equal(t, sqsfifo.ProvenanceInDoubt, doubt.Outcome)
		assert.Positive(t, doubt.Attempts)
		assert.NotEmpty(t, doubt.BodyHash)
	})
}

func TestProvenanceWriterWritesLines(t *testing.T) {
	var out writes
	sink := sqsfifo.ProvenanceWriter(&out)
	at := time.Date(2025, 12, 4, 0, 4, 35, 0, time.UTC)
	for range 2 {
		require.NoError(t, sink(sqsfifo.ProvenanceRecord{Time: at, Outcome: sqsfifo.ProvenanceStored, DedupeKey: "soil|17"}))
	}
	line := `{"time":"2025-12-04T00:04:35Z","outcome":"stored","dedupe_key":"soil|17","duplicate_detected":false,"replay_triggered":false}` + "\n"
	assert.Equal(t, writes{line, line}, out)
	require.ErrorIs(t, sqsfifo.ProvenanceWriter(failing{})(sqsfifo.ProvenanceRecord{}), os.ErrClosed)
}

// halfWriter fails twice: the second Write writes half of the text, and the third Write
// writes nothing.
type halfWriter struct {
	text  strings.Builder
	calls int
}

func (w *halfWriter) Write(b []byte) (int, error) {
	switch w.calls++; w.calls {
	case 2:
		b = b[:len(b)/2]
		w.text.Write(b)
		return len(b), io.ErrShortWrite
	case 3:
		return 0, io.ErrShortWrite
	}
	return w.text.Write(b)
}

// A partly written record does not spoil the next record.
func TestProvenanceWriterAfterATornLine(t *testing.T) {
	var w halfWriter
	sink := sqsfifo.ProvenanceWriter(&w)
	failed := 0
	for i := range 5 {
		if sink(sqsfifo.ProvenanceRecord{Attempts: i + 1}) != nil {
			failed++
		}
	}
	assert.Equal(t, 2, failed)
	var attempts []int
	for line := range strings.Lines(w.text.String()) {
		var r sqsfifo.ProvenanceRecord
		if json.Unmarshal([]byte(line), &r) == nil {
			attempts = append(attempts, r.Attempts)
		}
	}
	assert.Equal(t, []int{1, 4, 5}, attempts)
}

type writes []string

func (w *writes) Write(b []byte) (int, error) {
	*w = append(*w, string(b))
	return len(b), nil
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

// A sink that is slow, fails or panics does not delay a send and does not lose an event.
// Close reports the lost records.
func TestASinkHoldsNothingUp(t *testing.T) {
	for _, tc := range []struct {
		name string
		sink sqsfifo.ProvenanceSink
		lost int64
		is   error
	}{
		{"slow", func(sqsfifo.ProvenanceRecord) error { time.Sleep(time.Hour); return nil }, 0, nil},
		{"failing", func(sqsfifo.ProvenanceRecord) error { return os.ErrPermission }, 20, os.ErrPermission},
		{"panicking", func(sqsfifo.ProvenanceRecord) error { panic("no disk") }, 20, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := producertest.NewQueue(t, sqstest.Config{})
				var o *observed
				p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
					o = observe(c)
					c.Telemetry.Provenance = tc.sink
				})
				start := time.Now()
				require.NoError(t, p.SendBatch(t.Context(), producertest.Scenes(20, 20)).Err())
				assert.Zero(t, time.Since(start), "no send waits for the sink")
				assert.Len(t, q.Messages(), 20)

				err := p.Close(t.Context())
				values, _ := o.metrics(t)
				assert.Equal(t, tc.lost, values["sqs_fifo.provenance.dropped {record}"])
				if tc.lost == 0 {
					require.NoError(t, err)
					assert.Equal(t, 20*time.Hour, time.Since(start), "Close waits for the records")
					return
				}
				var missing *sqsfifo.ProvenanceError
				require.ErrorAs(t, err, &missing)
				assert.Equal(t, tc.lost, missing.Lost)
				if tc.is != nil {
					require.ErrorIs(t, err, tc.is)
				}
			})
		})
	}
}

// If a sink never returns, the records beyond the limit of waiting records are lost,
// and Close ends when its context ends.
func TestABlockedSinkDropsWhatDoesNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{DiscardDeleted: true})
		release := make(chan struct{})
		var order []string
		p := producertest.On(t, producertest.InstantClient{Queue: q}, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Telemetry.Provenance = func(r sqsfifo.ProvenanceRecord) error {
				<-release
				order = append(order, r.DedupeKey)
				return nil
			}
		})
		_, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		synctest.Wait() // the sink has the record and blocks
		require.NoError(t, p.SendBatch(t.Context(), producertest.Scenes(10_007, 500)).Err())

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, p.Close(ctx), context.DeadlineExceeded)
		close(release)
		var missing *sqsfifo.ProvenanceError
		require.ErrorAs(t, p.Close(t.Context()), &missing)
		assert.EqualValues(t, 7, missing.Lost)
		require.NoError(t, errors.Unwrap(missing))
		assert.Len(t, order, 10_001)
		last := map[string]string{} // number of the last recorded event of each group; numbers must increase
		for _, key := range order[1:] {
			var n int
			_, err := fmt.Sscanf(key, "landsat|scene-%d", &n)
			require.NoError(t, err)
			group := fmt.Sprint(n % 500)
			require.Less(t, last[group], fmt.Sprintf("%09d", n))
			last[group] = fmt.Sprintf("%09d", n)
		}
	})
}

// The attribute ReplayAttribute marks a message as part of a replay. The provenance
// record then reports a replay, even if this producer never sent the event before. The
// value of the attribute does not change the identity of the event.
func TestReplayAttribute(t *testing.T) {
	q := producertest.NewQueue(t, sqstest.Config{})
	sink, got := records()
	p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) { c.Telemetry.Provenance = sink })
	msg, err := p.Build(producertest.Sample)
	require.NoError(t, err)
	msg.Attributes = map[string]string{sqsfifo.ReplayAttribute: "run-1"}
	_, err = p.SendMessage(t.Context(), msg)
	require.NoError(t, err)
	msg.Attributes[sqsfifo.ReplayAttribute] = "run-2"
	again, err := p.SendMessage(t.Context(), msg)
	require.NoError(t, err)
	assert.True(t, again.Duplicate)
	msg.Group = "" // refused
	_, err = p.SendMessage(t.Context(), msg)
	require.Error(t, err)
	require.NoError(t, p.Close(t.Context()))
	require.Len(t, *got, 3)
	for _, r := range *got {
		assert.True(t, r.ReplayTriggered)
	}
}
