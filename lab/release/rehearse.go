package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// rehearse packs each released module into the folder out, in the form that a release would
// publish. The content is the current files, with uncommitted changes. The folder can serve
// as a module proxy: GOPROXY=file://out.
func rehearse(root, version, out string) ([]released, error) {
	modules, err := releasedModules(root)
	if err != nil {
		return nil, err
	}
	if list := problems(modules, version); len(list) > 0 {
		return nil, errors.New(strings.Join(list, "\n"))
	}
	for _, m := range modules {
		if err := pack(root, m, version, out); err != nil {
			return nil, fmt.Errorf("%s: %w", m.path, err)
		}
	}
	return modules, nil
}

// pack writes one version of module m to the folder out, in the layout of a module proxy:
// the file list, and the .info, .mod and .zip files of the version.
func pack(root string, m released, version, out string) error {
	escaped, err := module.EscapePath(m.path)
	if err != nil {
		return err
	}
	folder := filepath.Join(out, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	files, err := moduleFiles(root, m.dir)
	if err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, time.Unix(0, 0).UTC()})
	if err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(root, m.dir, "go.mod")) // #nosec G304 -- a file of this repository
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": info, version + ".mod": mod} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return err
		}
	}
	w, err := os.Create(filepath.Join(folder, version+".zip")) // #nosec G304 -- a file in the folder that the caller names
	if err != nil {
		return err
	}
	return errors.Join(zip.Create(w, module.Version{Path: m.path, Version: version}, files), w.Close())
}

// moduleFile is a file of the working tree.
type moduleFile struct{ path, source string }

func (f moduleFile) Path() string                 { return f.path }
func (f moduleFile) Lstat() (os.FileInfo, error)  { return os.Lstat(f.source) }
func (f moduleFile) Open() (io.ReadCloser, error) { return os.Open(f.source) }

// moduleFiles returns the files below a folder that git tracks or does not ignore. If the
// module has no licence, it adds the repository's licence. Package zip omits the files of
// nested modules.
func moduleFiles(root, dir string) (files []zip.File, err error) {
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	list.Dir = filepath.Join(root, dir)
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	licensed := false
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		f := moduleFile{name, filepath.Join(root, dir, name)}
		if _, err := f.Lstat(); errors.Is(err, os.ErrNotExist) { // the file was deleted, and the deletion is not committed
			continue
		}
		licensed = licensed || name == "LICENSE"
		files = append(files, f)
	}
	if !licensed {
		files = append(files, moduleFile{"LICENSE", filepath.Join(root, "LICENSE")})
	}
	return files, nil
}
