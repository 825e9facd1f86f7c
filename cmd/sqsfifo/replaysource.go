package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/messageline"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
)

// sourceFlags has the flags that name the source of the messages to replay.
type sourceFlags struct {
	Lines      string `placeholder:"FILE" help:"JSON lines of messages."`
	Provenance string `placeholder:"FILE" help:"Provenance records of a producer, as sqsfifo.ProvenanceWriter writes them. Needs --bodies."`
	Bodies     string `placeholder:"FILE" help:"JSON lines of messages, of which --provenance takes the bodies."`
	Outbox     string `placeholder:"DATABASE" help:"Archive of an outbox whose Config.Sent is SentArchive."`
	Store      string `placeholder:"DATABASE" help:"Idempotency store whose records have the bodies of messages."`
	Operation  string `placeholder:"NAME" help:"With --store: records of this operation only."`
}

// check returns an error for invalid combinations of flags.
func (f sourceFlags) check() error {
	named := 0
	for _, s := range []string{f.Lines, f.Provenance, f.Outbox, f.Store} {
		if s != "" {
			named++
		}
	}
	switch {
	case named != 1:
		return fmt.Errorf("%d sources are named; want one of --lines, --provenance with --bodies, --outbox, --store", named)
	case (f.Provenance == "") != (f.Bodies == ""):
		return errors.New("--provenance and --bodies belong together: records hold no bodies")
	case f.Operation != "" && f.Store == "":
		return errors.New("--operation needs --store")
	}
	return nil
}

// open opens the source of messages that the flags name, for example a file or a database.
// It returns the source and a function to close it.
func (f sourceFlags) open(ctx context.Context) (replay.Source, func() error, error) {
	if err := f.check(); err != nil {
		return nil, nil, err
	}
	switch {
	case f.Lines != "":
		file, err := openFile(f.Lines)
		if err != nil {
			return nil, nil, fmt.Errorf("--lines: %w", err)
		}
		return replay.NewJSONLines(file.path, file, file.size), file.Close, nil
	case f.Provenance != "":
		return f.openProvenance()
	case f.Outbox != "":
		box, db, err := openOutbox(ctx, f.Outbox, outbox.Config{Sent: outbox.SentArchive})
		if err != nil {
			return nil, nil, fmt.Errorf("--outbox: %w", err)
		}
		return replay.NewArchive("outbox of "+db.name, box), db.Close, nil
	}
	store, db, err := openStore(ctx, f.Store)
	if err != nil {
		return nil, nil, fmt.Errorf("--store: %w", err)
	}
	name := "store of " + db.name
	if f.Operation != "" {
		name += " operation " + f.Operation
	}
	return replay.NewStore(name, store, idempotency.Filter{Operation: f.Operation}), closeAll(store, db), nil
}

func (f sourceFlags) openProvenance() (replay.Source, func() error, error) {
	records, err := openFile(f.Provenance)
	if err != nil {
		return nil, nil, fmt.Errorf("--provenance: %w", err)
	}
	bodies, err := openBodies(f.Bodies)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("--bodies: %w", err), records.Close())
	}
	return replay.NewProvenance(records.path, replay.ProvenanceLines(records, records.size), bodies.find), closeAll(records, bodies.file), nil
}

// bodyFile finds a message body by its hash in a file of JSON lines. The memory has only
// the hash, offset and size of each body's line.
type bodyFile struct {
	file   *regularFile
	places map[string]bodyPlace
}

type bodyPlace struct {
	offset int64
	size   int
}

func openBodies(path string) (*bodyFile, error) {
	file, err := openFile(path)
	if err != nil {
		return nil, err
	}
	b := &bodyFile{file, map[string]bodyPlace{}}
	if err := b.index(path); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return b, nil
}

func (b *bodyFile) index(path string) error {
	lines := messageline.NewReader(io.NewSectionReader(b.file, 0, b.file.size), 1<<20)
	for {
		t, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		var l messageline.Line
		if err == nil {
			l, err = messageline.Parse(t.Bytes)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", path, t.Number, err)
		}
		b.places[sqsfifo.BodyHash(l.Body)] = bodyPlace{t.Offset, len(t.Bytes)}
	}
}

// find implements [replay.FindBody].
func (b *bodyFile) find(_ context.Context, hash string) (string, bool, error) {
	place, ok := b.places[hash]
	if !ok {
		return "", false, nil
	}
	line := make([]byte, place.size)
	if _, err := b.file.ReadAt(line, place.offset); err != nil {
		return "", false, err
	}
	l, err := messageline.Parse(line)
	return l.Body, err == nil, err
}
