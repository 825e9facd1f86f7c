//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package replay

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// sourceLock is a file that exists as long as this process has the source. It outlives
// a crash, because nothing here could prove that its owner is dead.
type sourceLock struct{ path string }

func lockSource(path, source, owner string) (*sourceLock, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		text, _ := os.ReadFile(path)
		return nil, &LockedError{source, strings.TrimSpace(string(text)), path}
	}
	if err != nil {
		return nil, &JournalError{path, 0, "open the lock", err}
	}
	_, err = f.WriteString(owner + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(&JournalError{path, 0, "lock", err}, os.Remove(path))
	}
	return &sourceLock{path}, nil
}

func (l *sourceLock) release() error { return os.Remove(l.path) }

func ignoreUnsupported(error) error { return nil } // directories cannot be synced here
