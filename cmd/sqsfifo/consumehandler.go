package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
)

// consumedLine is a printed message. It has the form of the lines that "replay plan
// --lines" reads.
type consumedLine struct {
	Group      string            `json:"group"`
	DedupeKey  string            `json:"dedupe_key,omitempty"`
	EventID    string            `json:"event_id,omitempty"`
	Body       string            `json:"body"`
	Attributes map[string]string `json:"attributes,omitempty"`
	BodyHash   string            `json:"body_hash"`
	Status     replay.Status     `json:"status"`
	Sent       sentLine          `json:"sent"`
	MessageID  string            `json:"message_id"`
}

type sentLine struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

func consumedLineOf(m consumer.Message[json.RawMessage]) consumedLine {
	l := consumedLine{
		Group: m.Group, DedupeKey: m.DedupeKey, Body: m.Body, Attributes: attributeTexts(m), BodyHash: sqsfifo.BodyHash(m.Body),
		Status: replay.StatusDelivered, Sent: sentLine{m.SentAt, m.SentAt}, MessageID: m.MessageID,
	}
	if m.DedupeKey != "" {
		l.EventID = m.EventID.String()
	}
	return l
}

// attributeTexts returns the attributes as texts, binary values in base64.
func attributeTexts(m consumer.Message[json.RawMessage]) map[string]string {
	out := make(map[string]string, len(m.Attributes))
	for name, a := range m.Attributes {
		if a.StringValue != nil {
			out[name] = *a.StringValue
		} else {
			out[name] = base64.StdEncoding.EncodeToString(a.BinaryValue)
		}
	}
	return out
}

// fatalError ends the command: standard output or the queue has failed.
type fatalError struct{ err error }

func (e *fatalError) Error() string { return e.err.Error() }

// messagePrinter is the handler without a COMMAND argument: it prints each message as a
// line. The consumer deletes a message only after its line was written.
type messagePrinter struct {
	broken context.CancelCauseFunc // ends the command after an error of standard output

	mu  sync.Mutex
	out *lineWriter
}

func (p *messagePrinter) handle(_ context.Context, m consumer.Message[json.RawMessage]) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.write(consumedLineOf(m))
	if err := p.out.flush(); err != nil {
		p.broken(&fatalError{err})
		return consumer.Defer(err, time.Hour)
	}
	return nil
}

const (
	// exitPermanent means that the program can never handle the message (EX_DATAERR of
	// sysexits.h).
	exitPermanent = 65

	// startAgain is the pause before the next attempt if the program could not be started.
	startAgain = 10 * time.Second

	// longMessage is the size of a message's environment from which it may be the reason why
	// a system refuses to start the program.
	longMessage = 16 << 10
)

type messageRunner struct {
	command  []string
	patience time.Duration // time between SIGTERM and SIGKILL
	out, err *wholeLines
	broken   context.CancelCauseFunc // ends the command if no message can be handled
}

func newMessageRunner(command []string, visibility time.Duration, std stdio, broken context.CancelCauseFunc) *messageRunner {
	// If the visibility timeout cannot be extended, the program gets SIGTERM when a tenth
	// of it is left, and SIGKILL when a twentieth is left: it must end before another
	// consumer may receive the message.
	r := &messageRunner{command: command, patience: visibility / 20, out: &wholeLines{w: std.out}, err: &wholeLines{w: std.err}, broken: broken}
	if std.out == std.err {
		r.err = r.out
	}
	return r
}

func (r *messageRunner) handle(ctx context.Context, m consumer.Message[json.RawMessage]) error {
	program := exec.CommandContext(ctx, r.command[0], r.command[1:]...) // #nosec G204 -- the user names the program
	facts := messageEnvironment(m)
	program.Env = append(os.Environ(), facts...)
	program.Stdin = strings.NewReader(m.Body)
	out, errOut := lineBuffer{to: r.out}, lineBuffer{to: r.err}
	program.Stdout, program.Stderr = &out, &errOut
	program.WaitDelay = r.patience
	separate(program)
	endWithParent(program)
	runtime.LockOSThread() // keeps the thread that starts the program
	defer runtime.UnlockOSThread()
	err := program.Run()
	out.end()
	errOut.end()
	switch ended := program.ProcessState; {
	case ended != nil && ended.Success(): // the program succeeded; err may be about its output
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	case errors.Is(err, syscall.E2BIG):
		return r.tooLong(err, len(strings.Join(facts, "")))
	case ended == nil: // the program was not started, so this does not count as an attempt
		return consumer.Defer(err, startAgain)
	case ended.ExitCode() == exitPermanent:
		return consumer.Permanent(err)
	}
	return err
}

// tooLong returns the error for a program whose arguments and environment are too long for the
// system. Unless the message is long, that is so for every message, and the command ends.
func (r *messageRunner) tooLong(err error, size int) error {
	if size > longMessage {
		return consumer.Permanent(fmt.Errorf("the message adds %d bytes to the environment of the program, too many for this system: %w", size, err))
	}
	r.broken(&fatalError{fmt.Errorf("the arguments and the environment of the program are too long for this system: %w", err)})
	return consumer.Defer(err, time.Hour)
}

// messageEnvironment returns environment variables that describe the message to the
// program, such as SQSFIFO_GROUP.
func messageEnvironment(m consumer.Message[json.RawMessage]) []string {
	facts := []string{
		"SQSFIFO_GROUP=" + m.Group, "SQSFIFO_MESSAGE_ID=" + m.MessageID, "SQSFIFO_SEQUENCE_NUMBER=" + m.SequenceNumber,
		"SQSFIFO_ATTEMPT=" + strconv.Itoa(m.Attempt), "SQSFIFO_RECEIVES=" + strconv.Itoa(m.Receives), "SQSFIFO_BODY_HASH=" + sqsfifo.BodyHash(m.Body),
	}
	if m.DedupeKey != "" {
		facts = append(facts, "SQSFIFO_DEDUPE_KEY="+m.DedupeKey, "SQSFIFO_EVENT_ID="+m.EventID.String(),
			"SQSFIFO_EVENT_SOURCE="+m.EventSource, "SQSFIFO_EVENT_TIME="+m.EventTime.UTC().Format(time.RFC3339Nano))
	}
	for i, fact := range facts { // an environment variable must not contain NUL, but a message may
		facts[i] = strings.ReplaceAll(fact, "\x00", "")
	}
	return facts
}

// wholeLines writes the output of several concurrent programs without mixing their lines.
type wholeLines struct {
	mu sync.Mutex
	w  io.Writer
}

// lineBuffer collects the output of one program and writes each complete line to its
// writer. A line over 64 KiB is written in parts.
type lineBuffer struct {
	to   *wholeLines
	rest []byte
}

func (b *lineBuffer) Write(p []byte) (int, error) {
	b.rest = append(b.rest, p...)
	end := bytes.LastIndexByte(b.rest, '\n') + 1
	if end == 0 && len(b.rest) > 64<<10 {
		end = len(b.rest)
	}
	if err := b.pass(end); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (b *lineBuffer) pass(end int) error {
	b.to.mu.Lock()
	defer b.to.mu.Unlock()
	_, err := b.to.w.Write(b.rest[:end])
	b.rest = append(b.rest[:0], b.rest[end:]...)
	return err
}

// end writes the text after the last line break, with a line break added.
func (b *lineBuffer) end() {
	if len(b.rest) > 0 {
		b.rest = append(b.rest, '\n')
		// Ignore the error: only the program's exit code decides whether the message is
		// deleted.
		_ = b.pass(len(b.rest))
	}
}

// noteWriter is an io.Writer that prints each write as a line above the progress bar.
type noteWriter struct{ progress *progress }

func (w noteWriter) Write(p []byte) (int, error) {
	w.progress.say(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}
