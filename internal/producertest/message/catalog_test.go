package message

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/catalog"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// A producer with a catalogue refuses an event whose dataset the catalogue does not have,
// before anything is sent, also in a built message. With EnforcementWarn it reports it.
func TestUnknownDataset(t *testing.T) {
	known, err := catalog.Open(fstest.MapFS{"catalog.json": {Data: []byte(`{"type":"Collection","id":"storms"}`)}})
	require.NoError(t, err)
	type run struct {
		DatasetID string `json:"dataset_id,omitempty"`
		dataset   string
	}
	config := func(q *sqstest.Queue, e sqsfifo.Enforcement, c sqsfifo.Catalog) *sqsfifo.Producer[run] {
		p, err := sqsfifo.NewProducer(q, sqsfifo.Config[run]{
			QueueURL: q.URL(), Source: producertest.Source, Catalog: c, Enforcement: e,
			Identify: func(r run) (sqsfifo.Identity, error) {
				id := sqsfifo.Identity{DedupeKey: "run", Group: "g", Time: time.Unix(1, 0)}
				if r.dataset != "" {
					id.Dataset, id.DedupeKey = &sqsfifo.Dataset{ID: r.dataset, Version: "1.0.0", SourceURI: "s3://b/k"}, ""
				}
				return id, nil
			},
		})
		require.NoError(t, err)
		t.Cleanup(func() { _ = p.Close(t.Context()) })
		return p
	}
	for event, field := range map[run]string{
		{}: "", {dataset: "storms"}: "", {DatasetID: "storms"}: "", {dataset: " storms "}: "",
		{dataset: "storm"}: "Dataset", {DatasetID: "storm"}: "MessageBody", {dataset: "storms", DatasetID: "storm"}: "MessageBody",
	} {
		q := producertest.NewQueue(t, sqstest.Config{})
		built, err := config(q, 0, nil).Build(event)
		require.NoError(t, err)
		p := config(q, sqsfifo.EnforcementRefuse, known)
		_, buildErr := p.Build(event)
		_, sendErr := p.Send(t.Context(), event)
		_, messageErr := p.SendMessage(t.Context(), built)
		receipt, err := config(q, sqsfifo.EnforcementWarn, known).Send(t.Context(), event)
		require.NoError(t, err)
		for _, err := range []error{buildErr, sendErr, messageErr} {
			if field == "" {
				require.NoError(t, err)
				continue
			}
			var wrong *sqsfifo.ViolationError
			require.ErrorAs(t, err, &wrong)
			require.Len(t, wrong.Findings, 1)
			assert.Equal(t, "SF047", wrong.Findings[0].Rule)
			assert.Equal(t, field, wrong.Findings[0].Field)
		}
		assert.Equal(t, field != "", len(receipt.Findings) == 1)
		assert.Len(t, q.Messages(), 1, "the one with EnforcementWarn, or the first")
	}
}
