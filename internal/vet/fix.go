package vet

import (
	"bytes"
	"context"
	"maps"
	"os"
	"slices"
)

// Fix is one change to the source code that removes a finding.
type Fix struct {
	Message string
	Edits   []Edit
}

// Edit replaces a part of a file with New. The part begins at byte offset Start and ends
// before End.
type Edit struct {
	File       string
	Start, End int
	New        string
}

// Fix lets "go vet -fix" apply the fixes of the findings, and returns the changed files,
// sorted. The go command leaves generated files and conflicting fixes alone, formats a
// changed file and removes imports that only the replaced code used. The Options must be
// those of the [Run] that made the report. The report still describes the files before the
// fixes: call Run again for the remaining findings.
func (r *Report) Fix(ctx context.Context, o Options) (changed []string, err error) {
	before := map[string][]byte{}
	for _, f := range r.Findings {
		for _, fix := range f.Fixes {
			for _, e := range fix.Edits {
				if before[e.File], err = os.ReadFile(e.File); err != nil {
					return nil, err
				}
			}
		}
	}
	if len(before) == 0 {
		return nil, nil
	}
	if _, err := runGoVet(ctx, o, "-fix"); err != nil {
		return nil, err
	}
	for _, file := range slices.Sorted(maps.Keys(before)) {
		text, err := os.ReadFile(file) // #nosec G304 -- a source file with a finding
		if err != nil {
			return changed, err
		}
		if !bytes.Equal(text, before[file]) {
			changed = append(changed, file)
		}
	}
	return changed, nil
}
