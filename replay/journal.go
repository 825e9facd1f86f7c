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
	"runtime"
	"syscall"
)

// Journal is the file with the entries of all runs of one plan. Each line has one entry and
// its checksum. A Journal is for one goroutine at a time.
//
// After a crash, [OpenJournal] removes an incomplete last write. The messages of this
// write were not sent, because a run sends only after a complete write.
type Journal struct {
	path          string
	lock          *sourceLock // nil if the journal is read-only
	file          disk
	completeBytes int64 // length of the complete commits in bytes
	commit        uint64
	err           error // the first error of an append; all later appends return it
}

// disk is the subset of a file used by a journal.
type disk interface {
	io.ReaderAt
	io.Writer // appends
	Truncate(size int64) error
	Sync() error
	Close() error
}

// OpenJournal opens or creates the plan's journal in directory dir, and locks the plan's
// source there. An empty owner means the machine's name and the process ID.
//
// A second run over this source, with any plan, gets a [*LockedError] that names the
// owner. All runs on a machine must use one directory on a local file system. The
// operating system releases the lock when the process ends in any way.
func OpenJournal(dir string, plan *Plan, owner string) (*Journal, error) {
	if owner == "" {
		host, _ := os.Hostname()
		owner = fmt.Sprintf("%s %d", cmp.Or(host, "process"), os.Getpid())
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, &FileError{dir, 0, "make the directory", err}
	}
	sum := sha256.Sum256([]byte(plan.Source))
	lock, err := lockSource(filepath.Join(dir, hex.EncodeToString(sum[:8])), plan.Source, owner)
	if err != nil {
		return nil, err
	}
	j, err := openFile(journalPath(dir, plan), dir)
	if err != nil {
		return nil, errors.Join(err, lock.release())
	}
	j.lock = lock
	return j, nil
}

// ReadJournal opens the journal of a plan for reading, even during a run. Writes fail.
// The error wraps [fs.ErrNotExist] if no run of the plan has begun.
//
// [fs.ErrNotExist]: https://pkg.go.dev/io/fs#ErrNotExist
func ReadJournal(dir string, plan *Plan) (*Journal, error) {
	path := journalPath(dir, plan)
	f, err := os.Open(path) // #nosec G304 -- the journal of the plan
	if err != nil {
		return nil, &FileError{path, 0, "open", err}
	}
	j := &Journal{path: path, file: f, err: errReadOnly}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(&FileError{path, 0, "stat", err}, f.Close())
	}
	// A run may be appending to this file now. Scan only its present size: a line that is
	// completed during the scan would look like damage.
	if j.completeBytes, j.commit, err = scanJournal(path, f, info.Size()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

var errReadOnly = errors.New("it was opened to read")

// Close closes the file and releases the lock. The file remains.
func (j *Journal) Close() error {
	if j.err == nil {
		j.err = os.ErrClosed
	}
	err := j.file.Close()
	if j.lock != nil {
		err = errors.Join(err, j.lock.release())
	}
	return err
}

// entries yields all entries of the journal, in append order. It stops after the first
// error.
func (j *Journal) entries(ctx context.Context) iter.Seq2[journalEntry, error] {
	return func(yield func(journalEntry, error) bool) {
		r := newJournalReader(j.path, io.NewSectionReader(j.file, 0, j.completeBytes))
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

// append writes entries to the journal. They are durable when append returns nil. After
// an error some entries may be durable, and every later append fails. append does not
// keep the slice.
func (j *Journal) append(ctx context.Context, entries []journalEntry) error {
	if j.err != nil {
		return &FileError{j.path, 0, "it cannot be appended to", j.err}
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if len(entries) == 0 {
		return nil
	}
	var text []byte
	for i := range entries {
		var err error
		if text, err = appendLine(text, linePlace{j.commit + 1, uint64(len(entries) - 1 - i)}, &entries[i]); err != nil {
			return &FileError{j.path, 0, "encode an entry", err}
		}
	}
	if _, err := j.file.Write(text); err != nil {
		j.err = err
		return &FileError{j.path, 0, "write", err}
	}
	// After a failed sync, the next sync may report success although the data is lost.
	if err := j.file.Sync(); err != nil {
		j.err = err
		return &FileError{j.path, 0, "sync", err}
	}
	j.commit++
	j.completeBytes += int64(len(text))
	return nil
}

func journalPath(dir string, plan *Plan) string {
	return filepath.Join(dir, plan.ID[:min(32, len(plan.ID))]+".journal")
}

func openFile(path, dir string) (*Journal, error) {
	_, missing := os.Stat(path)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600) // #nosec G304 -- the journal of the plan
	if err != nil {
		return nil, &FileError{path, 0, "open", err}
	}
	// The file is new. Without a sync of the directory, it could be missing after a crash.
	if missing != nil {
		if err := syncDir(dir); err != nil {
			return nil, errors.Join(&FileError{path, 0, "sync its directory", err}, f.Close())
		}
	}
	j, err := recoverJournal(path, f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

// recoverJournal opens a journal and removes an incomplete last write.
func recoverJournal(path string, f disk) (*Journal, error) {
	j := &Journal{path: path, file: f}
	var err error
	if j.completeBytes, j.commit, err = scanJournal(path, f, math.MaxInt64); err != nil {
		return nil, err
	}
	if err := f.Truncate(j.completeBytes); err != nil {
		return nil, &FileError{path, 0, "remove a write that was cut off", err}
	}
	// This run relies on complete lines that the last owner may not have synced.
	if err := f.Sync(); err != nil {
		return nil, &FileError{path, 0, "sync", err}
	}
	return j, nil
}

// syncDir makes directory entries durable if the file system supports it.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir) // #nosec G304 -- the directory of the journals
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// FileError reports an unusable journal or plan. No message is sent after this error.
type FileError struct {
	Path string // path of the journal, or "plan" for a plan
	Line int    // from 1; 0 for the whole file
	Rule string
	Err  error // may be nil
}

func (e *FileError) Error() string {
	text := "replay: " + e.Path
	if e.Line > 0 {
		text += fmt.Sprintf(": line %d", e.Line)
	}
	text += ": " + e.Rule
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns Err.
func (e *FileError) Unwrap() error { return e.Err }
