package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// listing prints every message and collects unexpected results.
type listing struct {
	ctx      context.Context
	w        io.Writer
	producer *sqsfifo.Producer[Scene]
	errs     []error
}

func (l *listing) check(ok bool, format string, args ...any) {
	if !ok {
		l.errs = append(l.errs, fmt.Errorf(format, args...))
	}
}

// replays is a part of the listing. It sends the scenes, and sends them again immediately.
// On a fake queue it sends them a third time after the deduplication interval.
func (l *listing) replays(scenes []Scene, fake *sqstest.Queue) {
	isNew := l.send("send", scenes)
	replayed := l.send("replay, as a crashed pipeline would", scenes)
	if fake == nil {
		return
	}
	fake.Advance(5 * time.Minute)
	again := l.send("replay five minutes later: the deduplication interval is over", scenes)
	l.check(isNew == len(scenes) && replayed == 0 && again == len(scenes),
		"%d, %d and %d messages were new, want %d, 0 and %[4]d", isNew, replayed, again, len(scenes))
}

// send sends the scenes and returns the number of scenes new to SQS.
func (l *listing) send(title string, scenes []Scene) (isNew int) {
	fmt.Fprintf(l.w, "\n%s\n", title)
	t := tabwriter.NewWriter(l.w, 0, 0, 2, ' ', 0)
	for i, r := range l.producer.SendBatch(l.ctx, scenes) {
		if r.Err != nil {
			l.errs = append(l.errs, r.Err)
			continue
		}
		state := "new"
		if r.Receipt.Duplicate {
			state = "suppressed"
		} else {
			isNew++
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\tbody sha256 %s\n", state, scenes[i].ID, scenes[i].PathRow, r.Receipt.BodyHash)
	}
	l.errs = append(l.errs, t.Flush())
	return isNew
}

// mistakes tries two mistakes that would lose events with the plain SDK: one dedupe key for
// two payloads, and an identity only in an attribute. The producer must refuse both
// messages.
func (l *listing) mistakes(s Scene) {
	fmt.Fprintf(l.w, "\nrefused, never sent\n")
	reused := s
	reused.CloudCover++
	_, err := l.producer.Send(l.ctx, reused)
	var conflict *sqsfifo.ConflictError
	l.check(errors.As(err, &conflict), "a reused dedupe key was not refused: %w", err)
	fmt.Fprintf(l.w, "  %v\n", err)

	msg, err := l.producer.Build(s)
	if err != nil {
		l.errs = append(l.errs, err)
		return
	}
	msg.Attributes = map[string]string{"unique_key": "landsat-2025-12-04T00:00Z"}
	_, err = l.producer.SendMessage(l.ctx, msg)
	var violation *sqsfifo.ViolationError
	l.check(errors.As(err, &violation), "identity in an attribute was not refused: %w", err)
	fmt.Fprintf(l.w, "  %v\n", err)
}
