package sqsfifo_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

func ExampleDataset_IdempotencyKey() {
	key, err := sqsfifo.Dataset{
		ID:        "noaa_storm_events_1950_2025",
		Version:   "10.3.1",
		SourceURI: "HTTPS://WWW.NCEI.NOAA.GOV:443/storm-events/file_1950_2025.csv",
	}.IdempotencyKey()
	fmt.Println(key, err)
	// Output: sha256:7fd365dc3a22bccf2f7e584b28fa6bbb1730d8db5c5b7eb6d3a0e6d73743b6ea <nil>
}

func ExampleDataset_Normalize() {
	d, err := sqsfifo.Dataset{ID: " noaa_storm_events ", Version: "10.3.1", SourceURI: "HTTPS://WWW.NCEI.NOAA.GOV:443/./storms.csv"}.Normalize()
	fmt.Printf("%s|%s|%s %v\n", d.ID, d.Version, d.SourceURI, err)
	// Output: noaa_storm_events|v10.3.1|https://www.ncei.noaa.gov/storms.csv <nil>
}

func ExampleJoinKey() {
	fmt.Println(sqsfifo.JoinKey("landsat", "LC08_L2SP_047027_20201204_20210313_02_T1"))
	fmt.Println(sqsfifo.JoinKey("a|b", "c"))
	fmt.Println(sqsfifo.JoinKey("a", "b|c"))
	fmt.Println(sqsfifo.JoinKey("landsat", ""))
	// Output:
	// landsat|LC08_L2SP_047027_20201204_20210313_02_T1 <nil>
	// a\|b|c <nil>
	// a|b\|c <nil>
	//  sqsfifo: invalid part 2: empty; an unset part would make different events one, leave it out or give it a value
}

func ExampleBodyHash() {
	// The hash shown to consumers of a queue with content-based deduplication.
	fmt.Println(sqsfifo.BodyHash("hello"))
	// Output: 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824
}

func ExampleDeriveEventID() {
	at := time.Date(2020, 12, 4, 19, 2, 11, 0, time.UTC)
	fmt.Println(sqsfifo.DeriveEventID("kfm.remote-sensing.landsat-refresh", "landsat|LC08_047027_20201204", at))
	// Output: 01762f22-1338-7815-b963-621cb549bddf
}

func ExampleDecodeEnvelope() {
	type Refresh struct {
		Tile string `json:"tile"`
	}
	e, err := sqsfifo.DecodeEnvelope[Refresh](`{"dedupe_key":"soil|17","event_id":"0193917a-6b80-7c3e-9a5d-2f1b8c4d6e70",` +
		`"event_source":"kfm.soils.refresh","event_time":"2024-12-04T00:00:00Z","payload":{"tile":"p32r29"}}`)
	fmt.Println(e.DedupeKey, e.EventTime, e.Payload.Tile, err)

	_, err = sqsfifo.DecodeEnvelope[Refresh](`{ "tile": "p32r29" }`)
	var broken *sqsfifo.EnvelopeError
	fmt.Println(errors.As(err, &broken))
	// Output:
	// soil|17 2024-12-04 00:00:00 +0000 UTC p32r29 <nil>
	// true
}
