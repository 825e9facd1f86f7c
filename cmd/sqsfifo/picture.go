package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/timeline"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/messageline"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// pictureFlags has the flags for an HTML page. Findings are messages with a bad outcome.
type pictureFlags struct {
	HTML       string `name:"html" type:"path" placeholder:"FILE" help:"Write a page that shows the messages over time to this file; it needs no network."`
	HTMLBodies bool   `name:"html-bodies" default:"true" negatable:"" help:"Show in the page the parts of bodies and attributes in which findings differ, shortened; other bodies are not in the page (default true)."`
}

// picture creates the HTML page for --html. A nil picture creates no page.
type picture struct {
	pictureFlags
	args     []string // file names in the command line; "-" is standard input
	recorder *timeline.Recorder
	spool    *os.File // temporary copy of standard input, or nil if none is needed
}

// begin prepares the page. With --html-bodies, the log is read twice (see readTexts).
// Standard input cannot be read twice, so begin creates a temporary file for a copy of
// it.
func (f pictureFlags) begin(args []string) (*picture, error) {
	if f.HTML == "" {
		return nil, nil
	}
	p := &picture{pictureFlags: f, args: args, recorder: timeline.NewRecorder()}
	if len(p.args) == 0 {
		p.args = []string{"-"}
	}
	if slices.Contains(p.args, "-") && f.HTMLBodies {
		var err error
		if p.spool, err = os.CreateTemp("", "sqsfifo-*.jsonl"); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *picture) stdin(r io.Reader) io.Reader {
	if p == nil || p.spool == nil {
		return r
	}
	return io.TeeReader(r, p.spool)
}

func (p *picture) close() {
	if p != nil && p.spool != nil {
		p.spool.Close()
		os.Remove(p.spool.Name())
	}
}

func (p *picture) add(m message, o sqstest.Outcome) {
	if p != nil {
		p.recorder.Add(timeline.Message{At: m.At, Group: m.GroupID, Place: timeline.Place{File: m.file, Replay: m.replay, Line: m.line}, Outcome: o})
	}
}

func (p *picture) write(files []string, scope string, replays []time.Duration) (err error) {
	if p == nil {
		return nil
	}
	options := timeline.Options{Files: files, Scope: scope, Replays: replays}
	if p.HTMLBodies {
		if options.Texts, err = p.readTexts(); err != nil {
			return fmt.Errorf("--html: the texts of the findings: %w", err)
		}
	}
	f, err := os.Create(p.HTML)
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	w := bufio.NewWriter(f)
	if err := p.recorder.Write(w, options); err != nil {
		return err
	}
	return w.Flush()
}

// readTexts reads the findings and their related messages from the log a second time,
// because the HTML page shows their bodies and attributes (see timeline.Recorder.Wanted).
func (p *picture) readTexts() (map[timeline.Place]sqstest.TimedMessage, error) {
	wanted := p.recorder.Wanted()
	texts := make(map[timeline.Place]sqstest.TimedMessage, len(wanted))
	for len(wanted) > 0 {
		file := wanted[0].File
		n := slices.IndexFunc(wanted, func(w timeline.Place) bool { return w.File != file })
		if n < 0 {
			n = len(wanted)
		}
		if err := p.readTextsOf(file, wanted[:n], texts); err != nil {
			return nil, err
		}
		wanted = wanted[n:]
	}
	return texts, nil
}

func (p *picture) readTextsOf(file int32, wanted []timeline.Place, texts map[timeline.Place]sqstest.TimedMessage) error {
	var from io.Reader = p.spool
	if p.args[file] == "-" {
		if _, err := p.spool.Seek(0, io.SeekStart); err != nil {
			return err
		}
	} else {
		info, err := os.Stat(p.args[file])
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return nil // a pipe cannot be read again; the page shows no bodies of it
		}
		f, err := os.Open(p.args[file])
		if err != nil {
			return err
		}
		defer f.Close()
		from = f
	}
	lines := messageline.NewReader(from, 64<<10)
	for len(wanted) > 0 {
		t, err := lines.Next()
		if err == nil && int32(t.Number) < wanted[0].Line {
			continue
		}
		var m sqstest.TimedMessage
		if err == nil {
			m, err = parseLine(t.Bytes)
		}
		if err != nil || int32(t.Number) > wanted[0].Line {
			return errors.New("the log has changed while it was read")
		}
		texts[wanted[0]] = m
		wanted = wanted[1:]
	}
	return nil
}
