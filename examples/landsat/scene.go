package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Scene is the event: one product of one Landsat scene is available. Scene is a function
// of the STAC item alone, so a repeated announcement gives the same event.
type Scene struct {
	ID         string    `json:"id"`
	Collection string    `json:"collection"`
	Platform   string    `json:"platform"`
	Acquired   time.Time `json:"acquired"`
	PathRow    string    `json:"path_row"`
	CloudCover float64   `json:"cloud_cover"`
	BBox       []float64 `json:"bbox"`
}

// identify returns the identity of a scene's event. Two products of a scene have different
// IDs and are two events. The message group is the path and row, so the events of one place
// stay in order.
func identify(s Scene) (sqsfifo.Identity, error) {
	key, err := sqsfifo.JoinKey("landsat", s.Collection, s.ID)
	return sqsfifo.Identity{DedupeKey: key, Group: s.PathRow, Time: s.Acquired}, err
}

// scenesJSON holds a few facts about seven real scenes, acquired from 1972 to 2022 by the
// Landsat satellites of NASA and the USGS.
//
//go:embed scenes.json
var scenesJSON []byte

func embeddedScenes() ([]Scene, error) {
	var items []stacItem
	if err := json.Unmarshal(scenesJSON, &items); err != nil {
		return nil, fmt.Errorf("scenes.json: %w", err)
	}
	var out []Scene
	for _, item := range items {
		s, err := item.scene()
		if err != nil {
			return nil, fmt.Errorf("scenes.json: %w", err)
		}
		out = append(out, s)
	}
	return out, nil
}

// readScenes reads each *.json file of a folder as a STAC item.
func readScenes(folder string) ([]Scene, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no STAC items (*.json)", folder)
	}
	var out []Scene
	for _, file := range files {
		text, err := os.ReadFile(file) // #nosec G304 -- the folder is the user's argument
		if err != nil {
			return nil, err
		}
		var item stacItem
		if err := json.Unmarshal(text, &item); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		s, err := item.scene()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// stacItem has the members of a Landsat scene's STAC item that the example needs.
// Catalogues use different names for some members.
type stacItem struct {
	ID         string    `json:"id"`
	Collection string    `json:"collection"`
	BBox       []float64 `json:"bbox"`
	Properties struct {
		Datetime   string  `json:"datetime"`
		Platform   string  `json:"platform"`
		EOPlatform string  `json:"eo:platform"`
		CloudCover float64 `json:"eo:cloud_cover"`
		WRSType    string  `json:"landsat:wrs_type"`
		WRSPath    string  `json:"landsat:wrs_path"`
		WRSRow     string  `json:"landsat:wrs_row"`
	} `json:"properties"`
}

func (i stacItem) scene() (Scene, error) {
	p := i.Properties
	if i.ID == "" || p.WRSPath == "" || p.WRSRow == "" {
		return Scene{}, errors.New("not the STAC item of a Landsat scene: id, landsat:wrs_path or landsat:wrs_row is missing")
	}
	acquired, err := time.Parse(time.RFC3339, p.Datetime)
	if err != nil {
		// Some catalogues give only the day.
		if acquired, err = time.Parse(time.DateOnly, p.Datetime); err != nil {
			return Scene{}, fmt.Errorf("item %s: datetime: %w", i.ID, err)
		}
	}
	platform := p.Platform
	if platform == "" {
		platform = p.EOPlatform
	}
	return Scene{
		ID: i.ID, Collection: i.Collection, Platform: platform, Acquired: acquired, CloudCover: p.CloudCover, BBox: i.BBox,
		PathRow: fmt.Sprintf("wrs%s-%03s%03s", p.WRSType, p.WRSPath, p.WRSRow),
	}, nil
}
