package catalog

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Static is a static STAC catalogue that was read once. It is safe for concurrent use.
type Static struct{ ids map[string]bool }

// Open reads a static STAC catalogue, from catalog.json or collection.json at the root of
// the file system. It follows the links "child" and "item", which have to be relative: a
// catalogue with absolute links is one of another place. The error names the file.
func Open(files fs.FS) (*Static, error) {
	s := &Static{map[string]bool{}}
	root := "catalog.json"
	if _, err := fs.Stat(files, root); err != nil {
		root = "collection.json"
	}
	seen := map[string]bool{}
	for todo := []string{root}; len(todo) > 0; {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[name] {
			continue
		}
		seen[name] = true
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("catalog: %w", err)
		}
		var r struct {
			Type, ID string
			Links    []struct{ Rel, Href string }
		}
		if err := json.Unmarshal(raw, &r); err != nil {
			return nil, fmt.Errorf("catalog: %s: %w", name, err)
		}
		if r.ID == "" {
			return nil, fmt.Errorf("catalog: %s: id is missing", name)
		}
		s.ids[r.ID] = s.ids[r.ID] || r.Type != "Catalog"
		for _, l := range r.Links {
			if l.Rel != "child" && l.Rel != "item" {
				continue
			}
			if strings.Contains(l.Href, ":") || path.IsAbs(l.Href) {
				return nil, fmt.Errorf("catalog: %s: the link %q is not relative; copy the catalogue with relative links", name, l.Href)
			}
			todo = append(todo, path.Join(path.Dir(name), l.Href))
		}
	}
	return s, nil
}

// Knows reports whether the catalogue has an Item or a Collection with this id.
func (s *Static) Knows(datasetID string) bool { return s.ids[datasetID] }
