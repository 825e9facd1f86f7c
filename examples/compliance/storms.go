// Package storms is a team's pipeline: a producer of storm events, and a test in
// storms_test.go. The contract of the Kansas Frontier Matrix (KFM), in docs/kfm, requires
// such a test of each pipeline.
package storms

import (
	"strconv"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Storm is a record of the NOAA storm events database, which begins in 1950.
type Storm struct {
	EventID int       `json:"noaa_event_id"`
	State   string    `json:"state"`
	Kind    string    `json:"kind"`
	Begin   time.Time `json:"begin"`
}

// NewProducer returns the pipeline's producer. NOAA publishes a file per year, so the
// events of a year are a message group and stay in order.
func NewProducer(client sqsfifo.Client, queueURL string) (*sqsfifo.Producer[Storm], error) {
	return sqsfifo.NewProducer(client, sqsfifo.Config[Storm]{
		QueueURL: queueURL,
		Source:   "kfm.hazards.storm-events",
		Identify: func(s Storm) (sqsfifo.Identity, error) {
			key, err := sqsfifo.JoinKey("storm", strconv.Itoa(s.EventID))
			return sqsfifo.Identity{DedupeKey: key, Group: s.Begin.UTC().Format("2006"), Time: s.Begin}, err
		},
	})
}
