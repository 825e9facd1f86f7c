//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package replay

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
)

// sourceLock is a file that is locked by this process, with its owner in it. The file
// stays: if it were removed, another process could lock one that nobody sees.
type sourceLock struct{ file *os.File }

func lockSource(path, source, owner string) (*sourceLock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, &JournalError{path, 0, "open the lock", err}
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		text, _ := io.ReadAll(io.NewSectionReader(f, 0, 1024))
		return nil, errors.Join(&LockedError{source, strings.TrimSpace(string(text)), path}, f.Close())
	}
	if err == nil {
		err = errors.Join(f.Truncate(0), writeAt(f, owner+"\n"))
	}
	if err != nil {
		return nil, errors.Join(&JournalError{path, 0, "lock", err}, f.Close())
	}
	return &sourceLock{f}, nil
}

func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

// release gives up the lock; to close the file does.
func (l *sourceLock) release() error { return errors.Join(l.file.Truncate(0), l.file.Close()) }

func ignoreUnsupported(err error) error {
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) { // some file systems
		return nil
	}
	return err
}
