package producertest

import (
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Storms is a dataset in normal form.
var Storms = sqsfifo.Dataset{
	ID:        "noaa_storm_events_1950_2025",
	Version:   "v10.3.1",
	SourceURI: "https://www.ncei.noaa.gov/storm-events/file_1950_2025.csv",
}

// StormsKey is the idempotency key of Storms.
const StormsKey = "sha256:7fd365dc3a22bccf2f7e584b28fa6bbb1730d8db5c5b7eb6d3a0e6d73743b6ea"

// Scene is the event type of most tests.
type Scene struct {
	ID       string    `json:"id"`
	PathRow  string    `json:"path_row"`
	Acquired time.Time `json:"acquired"`
	Cloud    float64   `json:"cloud_cover"`
}

// Sample is one scene.
var Sample = Scene{
	ID: "LC08_L2SP_047027_20201204_20210313_02_T1", PathRow: "047027",
	Acquired: time.Date(2020, 12, 4, 19, 2, 11, 194_000_000, time.UTC), Cloud: 1.55,
}

// Source is the event source of Config.
const Source = "kfm.remote-sensing.landsat-refresh"

// Identify returns the identity of a scene: the path and row are its message group.
func Identify(s Scene) (sqsfifo.Identity, error) {
	key, err := sqsfifo.JoinKey("landsat", s.ID)
	return sqsfifo.Identity{DedupeKey: key, Group: s.PathRow, Time: s.Acquired}, err
}

// Config returns a configuration for scenes, with the URL of a queue that does not exist.
func Config() sqsfifo.Config[Scene] {
	return sqsfifo.Config[Scene]{
		QueueURL: "https://sqs.us-east-1.amazonaws.com/000000000000/scenes.fifo",
		Source:   Source,
		Identify: Identify,
	}
}

// Scenes returns n scenes, distributed over the given number of groups.
func Scenes(n, groups int) []Scene {
	out := make([]Scene, n)
	for i := range out {
		out[i] = Scene{ID: fmt.Sprintf("scene-%04d", i), PathRow: fmt.Sprintf("%03d", i%groups), Acquired: Sample.Acquired.Add(time.Duration(i) * time.Hour)}
	}
	return out
}

// Event returns the nth event of its group.
func Event(group string, n int) Scene {
	return Scene{ID: group + string(rune('0'+n)), PathRow: group, Acquired: Sample.Acquired}
}
