package catalog_test

import (
	"fmt"
	"os"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/catalog"
)

// A pipeline that processes the red band of a STAC Item. go test compiles this example and
// does not run it, because it needs a folder with a catalogue.
func Example() {
	item, err := os.ReadFile("stac/LT05_L2SP_010067_19860424.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	known, err := catalog.Open(os.DirFS("stac")) // a static STAC catalogue
	if err != nil {
		fmt.Println(err)
		return
	}
	dataset, err := catalog.Read(item, catalog.Choice{Asset: "red", Version: "2.0.0"})
	if err != nil {
		fmt.Println(err) // names the member of the Item
		return
	}
	fmt.Println(dataset.IdempotencyKey())
	_ = sqsfifo.Config[sqsfifo.Dataset]{Catalog: known} // and the other fields
}
