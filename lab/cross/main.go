// Command cross builds and vets every released module for each platform and prints a table
// of the results. If this machine can run programs of a platform, cross also runs the short
// tests of the root module. The exit code is 1 if anything failed.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// platforms are the platforms of the releases.
var platforms = []string{"linux/amd64", "linux/arm64", "linux/386", "linux/arm", "darwin/arm64", "darwin/amd64", "windows/amd64", "windows/arm64"}

func main() {
	work, err := exec.Command("go", "env", "GOWORK").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cross:", err)
		os.Exit(2)
	}
	root := filepath.Dir(strings.TrimSpace(string(work)))
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}")
	list.Dir = root
	text, err := list.Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cross:", err)
		os.Exit(2)
	}
	failed := false
	fmt.Println("| platform | module | build | vet | tests |")
	fmt.Println("|---|---|---|---|---|")
	for _, platform := range platforms {
		goos, goarch, _ := strings.Cut(platform, "/")
		for dir := range strings.Lines(string(text)) {
			dir = strings.TrimSpace(dir)
			name, err := filepath.Rel(root, dir)
			if err != nil || name == "lab" || strings.HasPrefix(filepath.ToSlash(name), "internal/") {
				continue // not released
			}
			cell := func(args ...string) string {
				cmd := exec.Command("go", args...) // #nosec G204 -- the commands below
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
				if out, err := cmd.CombinedOutput(); err != nil {
					fmt.Fprintf(os.Stderr, "%s, %s: go %s: %v\n%s\n", platform, name, strings.Join(args, " "), err, out)
					failed = true
					return "FAILED"
				}
				return "ok"
			}
			build, vet, tests := cell("build", "./..."), cell("vet", "./..."), "-"
			if name == "." && runs(goos, goarch) {
				tests = cell("test", "-short", "./...")
			}
			fmt.Printf("| %s | %s | %s | %s | %s |\n", platform, filepath.ToSlash(name), build, vet, tests)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// runs reports whether this machine can run the platform's programs.
func runs(goos, goarch string) bool {
	return goos == runtime.GOOS && (goarch == runtime.GOARCH || goarch == "386" && runtime.GOARCH == "amd64")
}
