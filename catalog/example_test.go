package catalog_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/catalog"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// A pipeline sends an event for the red band of a STAC Item. The producer refuses a dataset
// that the catalogue does not have.
func Example() {
	folder := "testdata/stac"
	item, err := os.ReadFile(filepath.Join(folder, "LT05_L2SP_010067_19860424.json"))
	if err != nil {
		fmt.Println(err)
		return
	}
	known, err := catalog.Open(os.DirFS(folder)) // a static STAC catalogue
	if err != nil {
		fmt.Println(err)
		return
	}
	dataset, err := catalog.Read(item, catalog.Choice{Asset: "red", Version: "2.0.0"})
	if err != nil {
		fmt.Println(err) // names the member of the Item
		return
	}
	queue := sqstest.Must(sqstest.NewQueue(sqstest.Config{}))
	producer := sqstest.Must(sqsfifo.NewProducer(queue, sqsfifo.Config[sqsfifo.Dataset]{
		QueueURL: queue.URL(), Organization: "acme", Source: "acme.imagery.red-band", Catalog: known,
		Identify: func(d sqsfifo.Dataset) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{Dataset: &d, Group: d.ID, Time: time.Date(1986, 4, 24, 0, 0, 0, 0, time.UTC)}, nil
		},
	}))
	for _, id := range []string{dataset.ID, "unknown"} {
		dataset.ID = id
		receipt, err := producer.Send(context.Background(), dataset)
		fmt.Println(sqsfifo.FateOf(err), receipt.DedupeKey)
	}
	// Output:
	// stored sha256:fe203310af925869d4349589b01afa7e84890b795b3d4099ac0fcf5268a0f582
	// not stored
}
