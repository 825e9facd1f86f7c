package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/kansas-frontier-matrix/sqsfifo"

// imports returns the imports of each package, without tests, as reported by the go
// command. It reads two modules: the root module and the module of cmd/sqsfifo. It omits
// examples and the programs of the documentation.
func imports(dir string) (map[string][]string, error) {
	var out []byte
	for _, of := range []string{dir, filepath.Join(dir, "cmd", "sqsfifo")} {
		cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
		cmd.Dir = of
		list, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		out = append(out, list...)
	}
	short := func(path string) (string, bool) {
		if path == module {
			return "sqsfifo", true
		}
		rest, ok := strings.CutPrefix(path, module+"/")
		return rest, ok && !strings.HasPrefix(rest, "examples/") && !strings.HasPrefix(rest, "docs/")
	}
	uses := map[string][]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return uses, nil
		} else if err != nil {
			return nil, err
		}
		name, ok := short(p.ImportPath)
		if !ok {
			continue
		}
		uses[name] = nil
		for _, i := range p.Imports {
			if i, ok := short(i); ok {
				uses[name] = append(uses[name], i)
			}
		}
		slices.Sort(uses[name])
	}
}

// house draws the picture of the packages, house.svg. Each package is a box in a layer, and
// imports only packages of lower layers. In small print the box lists these imports.
func house(uses map[string][]string) string {
	layers := map[int][]string{}
	top := 0
	for name := range uses {
		l := layer(uses, name)
		layers[l] = append(layers[l], name)
		top = max(top, l)
	}
	const width, boxWidth, gap, perRow, lineHeight = 940, 220, 12, 4, 16
	type box struct {
		x, y, height int
		name         string
		lines        []string
	}
	var boxes []box
	var rules []int // y coordinates of the lines between the layers
	y := 16
	for l := top; l >= 0; l-- {
		slices.Sort(layers[l])
		for row := range slices.Chunk(layers[l], perRow) {
			tallest := 0
			for i, name := range row {
				b := box{x: 16 + i*(boxWidth+gap), y: y, name: name, lines: wrap(uses[name], 32)}
				b.height = 28 + lineHeight*len(b.lines)
				tallest = max(tallest, b.height)
				boxes = append(boxes, b)
			}
			y += tallest + gap
		}
		rules = append(rules, y)
		y += gap
	}
	var description []string
	for _, name := range slices.Sorted(maps.Keys(uses)) {
		description = append(description, fmt.Sprintf("%s imports %s", name, cmp.Or(strings.Join(uses[name], ", "), "nothing of the module")))
	}
	return draw(width, y, "The packages of sqsfifo, in layers", strings.Join(description, "; ")+".", func(c *canvas) {
		for _, b := range boxes {
			c.rect(b.x, b.y, boxWidth, b.height, "box")
			c.text(b.x+10, b.y+19, "head", "start", strings.Replace(b.name, "/internal/", "/…/", 1))
			for i, line := range b.lines {
				c.text(b.x+10, b.y+19+lineHeight*(i+1), "small", "start", line)
			}
		}
		for _, y := range rules[:len(rules)-1] {
			c.line(16, y, width-16, y, "line", "3 4")
		}
	})
}

// layer returns the layer of a package. Layer 0 is the lowest: its packages import no other
// package of the module. Any other package is one layer above the highest package that it
// imports.
func layer(uses map[string][]string, name string) int {
	n := 0
	for _, used := range uses[name] {
		n = max(n, 1+layer(uses, used))
	}
	return n
}

// wrap joins names, without the prefix internal/, into lines of at most `width` characters.
// A longer name has a line alone.
func wrap(names []string, width int) []string {
	var lines []string
	for _, name := range names {
		name = strings.TrimPrefix(name, "internal/")
		if n := len(lines); n > 0 && len(lines[n-1])+2+len(name) <= width {
			lines[n-1] += ", " + name
			continue
		}
		lines = append(lines, name)
	}
	return lines
}
