// Command pictures draws the pictures of the documentation: the sequence diagram of the
// README (window.svg) and the map of the packages for contributors (house.svg).
//
//	go run ./docs/pictures
//
// A test compares the files with the output of the code.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// pictures returns each picture by file name. The parameter `root` is the module's folder.
func pictures(root string) (map[string]string, error) {
	uses, err := imports(root)
	if err != nil {
		return nil, err
	}
	return map[string]string{"window.svg": window(), "house.svg": house(uses)}, nil
}

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	all, err := pictures(root)
	if err != nil {
		return err
	}
	for name, svg := range all {
		if err := os.WriteFile(filepath.Join(root, "docs", "pictures", name), []byte(svg), 0o644); err != nil { // #nosec G306 -- a picture of the documentation
			return err
		}
	}
	return nil
}
