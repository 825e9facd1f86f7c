package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A module without go.mod gets a new one. A replace directive may point to another folder
// of the repository: completeGoMod copies this folder and points the directive to the
// copy.
func TestCompleteGoMod(t *testing.T) {
	dir := t.TempDir()
	m := module{path: "example.com/old", requires: []string{"example.com/a@v1.2.3"}}
	if err := m.completeGoMod(dir, nil); err != nil {
		t.Fatal(err)
	}
	if text := goMod(t, dir); text != "module example.com/old\n\ngo 1.16\n\nrequire example.com/a v1.2.3\n" {
		t.Errorf("got %q", text)
	}

	folder, m := published(t)
	repos := opened(t, folder)
	dir, err := repos.checkOut(m)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	write(t, dir, map[string]string{"go.mod": "module example.com/nobody/lost/in\n\ngo 1.26.0\n\nreplace example.com/nobody/lost/other => ../other\n"})
	if err := m.completeGoMod(dir, repos); err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(dir, "_beside", "0")
	if text := goMod(t, dir); !strings.Contains(text, "=> "+beside) {
		t.Errorf("got %q", text)
	}
	if text := goMod(t, beside); text != "module example.com/nobody/lost/other\n" {
		t.Errorf("got %q", text)
	}
}

func goMod(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
