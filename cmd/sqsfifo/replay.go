package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/replay"
)

type replayCmd struct {
	Plan   replayPlanCmd   `cmd:"" help:"Write a plan: what becomes of each message, and why. Nothing is sent."`
	Run    replayRunCmd    `cmd:"" help:"Send what a plan says, from the start or from where an earlier run ended."`
	Queue  replayQueueCmd  `cmd:"" help:"Send the messages of a parking queue or a dead-letter queue, and delete each after its copy was acknowledged."`
	Report replayReportCmd `cmd:"" help:"Show what became of a plan so far."`
}

func (*replayCmd) Help() string {
	return `Sends stored messages again, or for the first time, in the order of each group (package replay). A plan says for each message whether it is inside the deduplication window, where SQS suppresses it, or outside, where it is delivered again. A run follows the plan, and writes each message into a journal before it is sent, so that a second run continues a killed one and no message of a plan is stored twice. "replay queue" takes the messages of a parking queue or a dead-letter queue, without a plan.

Examples:

	sqsfifo replay plan day.plan --lines day.jsonl --from 2026-11-21T00:00:00Z
	sqsfifo replay run day.plan --lines day.jsonl --dry-run
	sqsfifo replay run day.plan --lines day.jsonl --queue-url https://sqs.eu-central-1.amazonaws.com/123456789012/scenes.fifo --journal day.db --rate 50
	sqsfifo replay report day.plan --journal day.db`
}

// filterFlags select messages. The flags --from and --before compare the time of the last
// send or, if the source does not record this time, the event_time.
type filterFlags struct {
	From        time.Time `placeholder:"TIME" help:"Messages sent last at this time (RFC 3339) or later; where that is not recorded, with this event_time or later."`
	Before      time.Time `placeholder:"TIME" help:"The same, before this time."`
	EventSource []string  `placeholder:"SOURCE" help:"Messages with this event_source; may be repeated."`
	Key         []string  `sep:"none" placeholder:"KEY" help:"Messages with this dedupe key; may be repeated."`
	Group       []string  `sep:"none" placeholder:"GROUP" help:"Messages of this group; may be repeated."`
	Status      []string  `enum:"unknown,pending,in_doubt,delivered,discarded" placeholder:"STATUS" help:"Messages with this recorded status: unknown, pending, in_doubt, delivered or discarded; may be repeated."`
}

func (f filterFlags) filter() (replay.Filter, error) {
	out := replay.Filter{From: f.From, Before: f.Before, EventSources: f.EventSource, DedupeKeys: f.Key, Groups: f.Group}
	for _, name := range f.Status {
		out.Statuses = append(out.Statuses, replay.Status(name))
	}
	if !f.From.IsZero() && !f.Before.IsZero() && !f.From.Before(f.Before) {
		return out, fmt.Errorf("--from %s is not before --before %s: no message is selected", stamp(f.From), stamp(f.Before))
	}
	return out, nil
}

type replayPlanCmd struct {
	Source sourceFlags `embed:"" group:"Source (one of them):"`
	Filter filterFlags `embed:"" group:"Filter:"`

	Window        string `enum:"skip,send,wait" default:"skip" placeholder:"WAY" help:"Messages that SQS would suppress, or might: skip them, send them nevertheless, or wait until it has forgotten them (default ${default})."`
	Redeliver     bool   `help:"Send what is recorded as delivered, too: consumers get it again."`
	ResendInDoubt bool   `help:"Send what may have been stored also when SQS may have forgotten it: at least once."`
	JSON          bool   `name:"json" help:"Print one JSON object: plan, source, made, items, excluded, counts."`

	Plan string `arg:"" help:"File to write the plan to, which is not there yet."`
}

func (*replayPlanCmd) Help() string {
	return `Reads a source, writes a plan, and prints how many messages it sends, skips or leaves unresolved, by their position in the deduplication window: new, inside, edge or outside. No request is made, and the plan holds no payload.

A line of --lines is a message as "sqsfifo send --dry-run" prints it, with what is known of it:

	{"group":"p32r29","body":"{...}","body_hash":"<SHA-256>","status":"delivered","sent":{"from":"2026-11-21T09:00:00Z","to":"2026-11-21T09:00:01Z"},"message_id":"..."}

All but the message may be left out. --store reads the records of an idempotency store, such as the journal of "sqsfifo send". DATABASE is the file of a SQLite database or a postgres:// URL.

The exit code is 0 if all is planned, 1 if the plan has a message that stops its group (unresolved, conflict, drift), 2 if no plan was written.

Examples:

	sqsfifo replay plan day.plan --lines day.jsonl
	sqsfifo replay plan day.plan --provenance provenance.jsonl --bodies bodies.jsonl --redeliver --group p32r29
	sqsfifo replay plan day.plan --outbox postgres://relay@db.example.org/orders --redeliver --from 2026-11-21T00:00:00Z --before 2026-11-22T00:00:00Z
	sqsfifo replay plan day.plan --store scenes.db --status in_doubt`
}

// planLine is the --json output of "replay plan". Member names are stable.
type planLine struct {
	Plan     string             `json:"plan"`
	Source   string             `json:"source"`
	Made     time.Time          `json:"made"`
	Items    int                `json:"items"`
	Excluded int                `json:"excluded"`
	Counts   []replay.PlanCount `json:"counts"`
}

func (c *replayPlanCmd) run(ctx context.Context, std stdio) (err error) {
	filter, err := c.Filter.filter()
	if err != nil {
		return err
	}
	if _, err := os.Stat(c.Plan); err == nil {
		return fmt.Errorf("%s is there already, and a run may have begun it; name another file", c.Plan)
	}
	source, closeSource, err := c.Source.open(ctx)
	if err != nil {
		return err
	}
	defer closing(closeSource, &err)
	plan, err := replay.NewPlan(ctx, source, replay.Options{Filter: filter, Window: replay.WindowPolicy(c.Window), Redeliver: c.Redeliver, ResendInDoubt: c.ResendInDoubt}, time.Now())
	if err != nil {
		return err
	}
	if err := writePlan(c.Plan, plan); err != nil {
		return err
	}
	counts := plan.Summary()
	if c.JSON {
		if counts == nil {
			counts = []replay.PlanCount{}
		}
		err = printLine(std.out, true, planLine{plan.ID, plan.Source, plan.Made, len(plan.Items), plan.Excluded, counts}, "")
	} else {
		err = writePlanTable(std.out, plan)
	}
	if err != nil {
		return err
	}
	return findingsIf(slices.ContainsFunc(counts, func(c replay.PlanCount) bool { return stopsGroup(c.Action) }))
}

// stopsGroup reports whether "replay run" stops the group at an item with this action, and
// sends neither this item nor later ones. With ActionDrift, the run reads the item again.
// If the message now agrees with the source's record, the run may send or skip the item,
// and the group then continues.
func stopsGroup(a replay.Action) bool {
	return a == replay.ActionUnresolved || a == replay.ActionConflict || a == replay.ActionDrift
}

// writePlan writes the plan to a new file. It either writes the whole plan durably, or
// leaves no file.
func writePlan(path string, plan *replay.Plan) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // #nosec G304 -- the user names the file
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			_ = os.Remove(path)
		}
	}()
	out := bufio.NewWriterSize(f, 1<<20)
	if err := plan.Write(out); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return f.Sync()
}

func readPlan(path string) (*replay.Plan, error) {
	f, err := os.Open(path) // #nosec G304 -- the user names the file
	if err != nil {
		return nil, err
	}
	defer f.Close()
	plan, err := replay.ReadPlan(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return plan, nil
}

// regularFile is a file that can be read at any offset.
type regularFile struct {
	*os.File
	path string // canonical path
	size int64  // in bytes
}

func openFile(name string) (*regularFile, error) {
	f, err := os.Open(name) // #nosec G304 -- the user names the file
	if err != nil {
		return nil, err
	}
	r := &regularFile{File: f}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is no regular file, which is needed to read it twice", name)
	default:
		r.size = info.Size()
		r.path, err = canonicalPath(name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

// canonicalPath returns the absolute path of a file without symbolic links: the same path
// for all names of the file.
func canonicalPath(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(absolute)
}

// closing calls the function `close` at the end of a command, in a defer statement. An error
// of `close` becomes the result of the command, unless the command has already failed.
func closing(close func() error, err *error) {
	if closeErr := close(); closeErr != nil && (*err == nil || errors.Is(*err, errFindings)) {
		*err = closeErr
	}
}

func closeAll(closers ...io.Closer) func() error {
	return func() error {
		var errs []error
		for _, c := range closers {
			errs = append(errs, c.Close())
		}
		return errors.Join(errs...)
	}
}
