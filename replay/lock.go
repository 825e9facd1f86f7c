package replay

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/gofrs/flock"
)

// LockedError reports that another run has locked the source. No message was sent.
type LockedError struct {
	Source string
	Owner  string // name chosen by the other run; may be empty
	Path   string // path of the lock file
}

func (e *LockedError) Error() string {
	owner := e.Owner
	if owner == "" {
		owner = "a process without a name yet"
	}
	return fmt.Sprintf("replay: not run: the source %q is being replayed by %s (lock %s); wait for its end or stop it", e.Source, owner, e.Path)
}

// sourceLock is a locked file and a file with the owner's name. Neither file is removed. If
// one process removed the locked file, another could create and lock a new file of the same
// name, and both would have a lock.
type sourceLock struct {
	lock  *flock.Flock
	owner string // path of the file with the owner's name
}

func lockSource(path, source, owner string) (*sourceLock, error) {
	l := &sourceLock{flock.New(path+".lock", flock.SetPermissions(0o600)), path + ".owner"}
	locked, err := l.lock.TryLock()
	if err != nil {
		return nil, &FileError{l.lock.Path(), 0, "lock", err}
	}
	if !locked {
		text, _ := os.ReadFile(l.owner) // #nosec G304 -- the owner file; OpenJournal chose its path
		return nil, &LockedError{source, strings.TrimSpace(string(text)), l.lock.Path()}
	}
	if err := os.WriteFile(l.owner, []byte(owner+"\n"), 0o600); err != nil {
		return nil, errors.Join(&FileError{l.owner, 0, "write the owner", err}, l.lock.Close())
	}
	return l, nil
}

func (l *sourceLock) release() error {
	return errors.Join(os.WriteFile(l.owner, nil, 0o600), l.lock.Close())
}
