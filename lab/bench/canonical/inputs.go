package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// event is a typical message body of about 350 bytes, with its members in no particular
// order.
type event struct {
	ID        string  `json:"event_id"`
	Source    string  `json:"event_source"`
	Time      string  `json:"event_time"`
	DedupeKey string  `json:"dedupe_key"`
	Payload   payload `json:"payload"`
}

type payload struct {
	Scene      string  `json:"scene_id"`
	Collection string  `json:"collection"`
	Path       int     `json:"wrs_path"`
	Row        int     `json:"wrs_row"`
	Cloud      float64 `json:"cloud_cover"`
	Elevation  float64 `json:"sun_elevation"`
	Reprocess  bool    `json:"reprocessed"`
}

var sampleEvent = event{
	ID:        "014e7a6f-1c00-7a9f-8f3b-0c6d9a3c1e55",
	Source:    "kfm.remote-sensing.landsat-refresh",
	Time:      "2015-07-10T01:02:03Z",
	DedupeKey: "landsat:LC08_L2SP_005009_20150710",
	Payload: payload{
		Scene: "LC08_L2SP_005009_20150710_02_T2", Collection: "landsat-c2l2",
		Path: 5, Row: 9, Cloud: 54.65, Elevation: 40.0015903,
	},
}

// item is a STAC item of about 11 KB, with typical floats and URLs.
type item struct {
	Type       string           `json:"type"`
	Version    string           `json:"stac_version"`
	Extensions []string         `json:"stac_extensions"`
	ID         string           `json:"id"`
	Collection string           `json:"collection,omitempty"`
	Properties properties       `json:"properties"`
	Geometry   geometry         `json:"geometry"`
	BBox       [4]float64       `json:"bbox"`
	Links      []link           `json:"links"`
	Assets     map[string]asset `json:"assets"`
}

type properties struct {
	Datetime    time.Time `json:"datetime"`
	Created     time.Time `json:"created,omitzero"`
	Platform    string    `json:"platform"`
	Instruments []string  `json:"instruments"`
	CloudCover  float64   `json:"eo:cloud_cover"`
	SunAzimuth  float64   `json:"view:sun_azimuth"`
	Elevation   float64   `json:"view:sun_elevation"`
	OffNadir    int       `json:"view:off_nadir"`
	EPSG        *int      `json:"proj:epsg"`
	WRSPath     string    `json:"landsat:wrs_path"`
	WRSRow      string    `json:"landsat:wrs_row"`
	SceneID     string    `json:"landsat:scene_id"`
	Category    string    `json:"landsat:collection_category"`
}

type geometry struct {
	Type        string         `json:"type"`
	Coordinates [][][2]float64 `json:"coordinates"`
}

type link struct {
	Rel   string `json:"rel"`
	Href  string `json:"href"`
	Type  string `json:"type,omitempty"`
	Title string `json:"title,omitempty"`
}

type asset struct {
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Type        string     `json:"type"`
	Roles       []string   `json:"roles"`
	Href        string     `json:"href"`
	Checksum    string     `json:"file:checksum"`
	Size        int64      `json:"file:size"`
	Bands       []band     `json:"eo:bands,omitempty"`
	Shape       [2]int     `json:"proj:shape,omitzero"`
	Transform   [6]float64 `json:"proj:transform,omitzero"`
}

type band struct {
	Name       string  `json:"name"`
	Common     string  `json:"common_name,omitempty"`
	GSD        float64 `json:"gsd"`
	Wavelength float64 `json:"center_wavelength"`
	Width      float64 `json:"full_width_half_max,omitempty"`
}

func sampleItem() item {
	epsg := 32622
	const base = "https://landsatlook.usgs.gov/data/collection02/level-2/standard/oli-tirs/2015/005/009/LC08_L2SP_005009_20150710_20200908_02_T2/LC08_L2SP_005009_20150710_20200908_02_T2"
	it := item{
		Type: "Feature", Version: "1.0.0", ID: "LC08_L2SP_005009_20150710_02_T2", Collection: "landsat-c2l2-sr",
		Extensions: []string{
			"https://landsat.usgs.gov/stac/landsat-extension/v1.1.1/schema.json", "https://stac-extensions.github.io/view/v1.0.0/schema.json",
			"https://stac-extensions.github.io/projection/v1.0.0/schema.json", "https://stac-extensions.github.io/eo/v1.0.0/schema.json",
		},
		Properties: properties{
			Datetime: time.Date(2015, 7, 10, 14, 34, 13, 893_212_000, time.UTC), Created: time.Date(2020, 9, 8, 7, 33, 41, 0, time.UTC), Platform: "LANDSAT_8",
			Instruments: []string{"OLI", "TIRS"}, CloudCover: 54.65, SunAzimuth: 177.8846007, Elevation: 40.0015903, EPSG: &epsg,
			WRSPath: "005", WRSRow: "009", SceneID: "LC80050092015191LGN01", Category: "T2",
		},
		BBox: [4]float64{-42.81076871497076, 71.03398759793903, -35.24761728197594, 73.37663856483091},
		Geometry: geometry{"Polygon", [][][2]float64{{
			{-40.207494643258215, 73.37663856483091},
			{-35.24761728197594, 72.53787734153468},
			{-38.14743429756088, 71.03398759793903},
			{-42.81076871497076, 71.81441016731796},
			{-40.207494643258215, 73.37663856483091},
		}}},
		Assets: map[string]asset{},
	}
	for _, rel := range []string{"root", "parent", "collection", "self", "alternate"} {
		it.Links = append(it.Links, link{Rel: rel, Href: base + "/" + rel + ".json", Type: "application/json"})
	}
	for i, name := range []string{"coastal", "blue", "green", "red", "nir08", "swir16", "swir22", "qa_aerosol", "qa_pixel", "qa_radsat", "mtl_json", "mtl_txt", "ang", "thumbnail", "reduced_resolution_browse"} {
		a := asset{
			Title:       fmt.Sprintf("Coastal/Aerosol Band (B%d)", i+1),
			Description: "Collection 2 Level-2 Coastal/Aerosol Band Surface Reflectance <" + name + ">",
			Type:        "image/vnd.stac.geotiff; cloud-optimized=true",
			Roles:       []string{"data", "reflectance"},
			Href:        base + "_" + name + ".TIF",
			Checksum:    fmt.Sprintf("1340%064x", uint64(i+3)*0x9E3779B97F4A7C15),
			Size:        76_543_210 + int64(i)*1_234_567,
		}
		if i < 7 {
			a.Bands = []band{{Name: fmt.Sprintf("OLI_B%d", i+1), Common: name, GSD: 30, Wavelength: 0.44 + float64(i)*0.08125, Width: 0.02}}
			a.Shape = [2]int{8411, 8431}
			a.Transform = [6]float64{30, 0, 352785, 0, -30, 8157015}
		}
		it.Assets[name] = a
	}
	return it
}

// compact removes the white space outside of the strings of a JSON text.
func compact(src []byte) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, src); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// read returns the content of a file in the folder of real inputs (-data).
func read(folder, name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
}
