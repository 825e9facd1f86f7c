package replay

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
)

// FileJournal is a [Journal] in a file. Marks that are appended together are one write
// and one fsync, and each line has a checksum. A last write that was cut off by a
// crash is recognised and taken back: nothing was sent because of it.
type FileJournal struct {
	path string
	lock *sourceLock // nil if it is only read
	file disk
	good int64 // bytes of whole waves
	wave uint64
	err  error // since which nothing can be appended
}

// disk is what a journal needs of a file.
type disk interface {
	io.ReaderAt
	io.Writer // at the end
	Truncate(size int64) error
	Sync() error
	Close() error
}

// OpenJournal opens the journal of the plan in a directory, and makes one if there is
// none. It locks the source in that directory: a second run over it, whatever its
// plan, gets a [*LockedError] with the owner. Empty means the name of the machine and
// the process ID. Let all runs on a machine use one directory, on a local file system.
//
// The operating system gives up the lock with the process, however that ends. Where
// it has no flock, such as on Windows, the file of a lock stays after a crash: the
// error names it, to be removed by hand when the owner is surely dead.
func OpenJournal(dir string, plan *Plan, owner string) (*FileJournal, error) {
	if owner == "" {
		host, _ := os.Hostname()
		owner = fmt.Sprintf("%s %d", cmp.Or(host, "process"), os.Getpid())
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, &JournalError{dir, 0, "make the directory", err}
	}
	sum := sha256.Sum256([]byte(plan.Source))
	lock, err := lockSource(filepath.Join(dir, hex.EncodeToString(sum[:8])+".lock"), plan.Source, owner)
	if err != nil {
		return nil, err
	}
	j, err := openFile(JournalPath(dir, plan), dir)
	if err != nil {
		return nil, errors.Join(err, lock.release())
	}
	j.lock = lock
	return j, nil
}

// JournalPath returns the file that [OpenJournal] keeps the journal of a plan in.
func JournalPath(dir string, plan *Plan) string {
	return filepath.Join(dir, plan.ID[:min(32, len(plan.ID))]+".journal")
}

func openFile(path, dir string) (*FileJournal, error) {
	_, missing := os.Stat(path)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, &JournalError{path, 0, "open", err}
	}
	if missing != nil { // or the file may be gone after a crash, with all its marks
		if err := syncDir(dir); err != nil {
			return nil, errors.Join(&JournalError{path, 0, "sync its directory", err}, f.Close())
		}
	}
	j, err := recoverJournal(path, f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

// ReadJournal opens the journal of a plan to read it, also while a run has it. Append
// fails.
func ReadJournal(dir string, plan *Plan) (*FileJournal, error) {
	path := JournalPath(dir, plan)
	f, err := os.Open(path)
	if err != nil {
		return nil, &JournalError{path, 0, "open", err}
	}
	j := &FileJournal{path: path, file: f, err: errReadOnly}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(&JournalError{path, 0, "stat", err}, f.Close())
	}
	// What a run appends from now on is not looked at: half of a line would be.
	if j.good, j.wave, err = scanJournal(path, f, info.Size()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

var errReadOnly = errors.New("it was opened to read")

// recoverJournal takes back a last write that was cut off.
func recoverJournal(path string, f disk) (*FileJournal, error) {
	j := &FileJournal{path: path, file: f}
	var err error
	if j.good, j.wave, err = scanJournal(path, f, math.MaxInt64); err != nil {
		return nil, err
	}
	if err := f.Truncate(j.good); err != nil {
		return nil, &JournalError{path, 0, "take back a write that was cut off", err}
	}
	// What the last owner wrote without a sync counts from now on.
	if err := f.Sync(); err != nil {
		return nil, &JournalError{path, 0, "sync", err}
	}
	return j, nil
}

// Marks implements [Journal].
func (j *FileJournal) Marks(ctx context.Context) iter.Seq2[Mark, error] {
	return func(yield func(Mark, error) bool) {
		r := newJournalReader(j.path, io.NewSectionReader(j.file, 0, j.good))
		for {
			m, err := r.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// Append implements [Journal].
func (j *FileJournal) Append(ctx context.Context, marks []Mark) error {
	if j.err != nil {
		return &JournalError{j.path, 0, "it cannot be appended to", j.err}
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if len(marks) == 0 {
		return nil
	}
	var text []byte
	for i := range marks {
		var err error
		if text, err = appendLine(text, place{j.wave + 1, uint64(len(marks) - 1 - i)}, &marks[i]); err != nil {
			return &JournalError{j.path, 0, "encode a mark", err}
		}
	}
	if _, err := j.file.Write(text); err != nil {
		j.err = err
		return &JournalError{j.path, 0, "write", err}
	}
	if err := j.file.Sync(); err != nil { // a second one would not say what became of the first
		j.err = err
		return &JournalError{j.path, 0, "sync", err}
	}
	j.wave++
	j.good += int64(len(text))
	return nil
}

// Close closes the file and gives up the lock. The journal stays.
func (j *FileJournal) Close() error {
	if j.err == nil {
		j.err = os.ErrClosed
	}
	err := j.file.Close()
	if j.lock != nil {
		err = errors.Join(err, j.lock.release())
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(ignoreUnsupported(d.Sync()), d.Close())
}
