package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
)

type outboxCmd struct {
	Lag     outboxLagCmd     `cmd:"" help:"Show how many messages wait, and for how long."`
	Stuck   outboxStuckCmd   `cmd:"" help:"Show which groups do not go on, and why."`
	Resolve outboxResolveCmd `cmd:"" help:"Decide what becomes of a message that the relay must not send."`
}

func (*outboxCmd) Help() string {
	return `Works on the outbox (package outbox) in a database, while its relay runs or without it. DATABASE is the file of a SQLite database or a URL such as postgres://USER@HOST/DATABASE?search_path=SCHEMA; a password is better kept in PGPASSWORD or ~/.pgpass than in the URL. The database must have its outbox already: nothing is created.

Examples:

	sqsfifo outbox lag orders.db
	sqsfifo outbox stuck postgres://relay@db.example.org/orders --age 2m
	sqsfifo outbox resolve orders.db --group p32r29 --position 7 --as took_effect --yes`
}

// outboxFlags has the flags of a command that works on an outbox.
type outboxFlags struct {
	ResendFor time.Duration `default:"${resend_for}" placeholder:"TIME" help:"Config.ResendFor of the outbox (default ${default})."`
	Database  string        `arg:"" help:"File of a SQLite database, or a postgres:// URL."`
}

// withOutbox opens the outbox, passes it to the callback, and closes the database.
func (f outboxFlags) withOutbox(ctx context.Context, sent outbox.SentPolicy, do func(*outbox.Outbox) error) (err error) {
	box, db, err := openOutbox(ctx, f.Database, outbox.Config{ResendFor: f.ResendFor, Sent: sent})
	if err != nil {
		return err
	}
	defer closing(db.Close, &err)
	return do(box)
}

// groupLine is a message group of the outbox in --json output. Member names are stable.
type groupLine struct {
	Group        string    `json:"group"`
	Messages     int64     `json:"messages"`
	Position     int64     `json:"position"` // position of the first message
	DedupeKey    string    `json:"dedupe_key,omitempty"`
	EventID      string    `json:"event_id,omitempty"`
	AgeSeconds   float64   `json:"age_seconds"`
	FirstAttempt time.Time `json:"first_attempt,omitzero"`
	State        string    `json:"state"` // waiting, unanswered or late
	Why          string    `json:"why"`
}

func lineOf(g outbox.GroupStats) groupLine {
	l := groupLine{
		Group: g.Group, Messages: g.Messages, Position: g.Position, DedupeKey: g.DedupeKey,
		AgeSeconds: g.Age.Seconds(), FirstAttempt: g.FirstAttempt,
	}
	if g.DedupeKey != "" {
		l.EventID = g.EventID.String()
	}
	switch {
	case g.Late():
		l.State = "late"
		l.Why = fmt.Sprintf("may have been stored at %s or later, which SQS may have forgotten; look for its dedupe key at the consumer, then: outbox resolve", stamp(g.FirstAttempt))
	case !g.FirstAttempt.IsZero():
		l.State = "unanswered"
		l.Why = fmt.Sprintf("tried since %s without an answer; a relay sends it again, and in %s it is late", stamp(g.FirstAttempt), ago(g.LateIn))
	default:
		l.State = "waiting"
		l.Why = "no attempt may have stored it; where a relay runs, RelayStats.Stopped and its log have the reason"
	}
	if g.DedupeKey == "" {
		l.Why += "; its row cannot be decoded"
	}
	return l
}

type outboxLagCmd struct {
	outboxFlags `embed:""`

	Limit int  `default:"20" placeholder:"N" help:"Most groups that are shown, the oldest first; 0 is all (default ${default})."`
	JSON  bool `name:"json" help:"Print one JSON object for the outbox, then one for each group."`
}

func (*outboxLagCmd) Help() string {
	return `Prints how many messages are in the outbox, in how many groups, how old the oldest is, how many are late and which relay leads; then the same of each group. An age is that of the first message of a group, since it was added.

Examples:

	sqsfifo outbox lag orders.db
	sqsfifo outbox lag postgres://relay@db.example.org/orders --json --limit 0`
}

// lagLine is the first line of --json output, about the whole outbox. Member names are
// stable.
type lagLine struct {
	Messages         int64   `json:"messages"`
	Groups           int64   `json:"groups"`
	OldestAgeSeconds float64 `json:"oldest_age_seconds"`
	Late             int64   `json:"late"`
	Leader           string  `json:"leader"` // "" if no relay leads
	Fence            int64   `json:"fence"`
}

func (c *outboxLagCmd) run(ctx context.Context, std stdio) error {
	if c.Limit < 0 {
		return fmt.Errorf("--limit: %d is below 0", c.Limit)
	}
	return c.withOutbox(ctx, outbox.SentDelete, func(box *outbox.Outbox) error {
		stats, err := box.Stats(ctx)
		if err != nil {
			return err
		}
		groups, err := box.Groups(ctx, 0)
		if err != nil {
			return err
		}
		more := 0
		if c.Limit > 0 && len(groups) > c.Limit {
			groups, more = groups[:c.Limit], len(groups)-c.Limit
		}
		err = c.print(std, stats, groups)
		if more > 0 {
			fmt.Fprintf(std.err, "%s more; --limit 0 shows all\n", counted(more, "group"))
		}
		return err
	})
}

func (c *outboxLagCmd) print(std stdio, s outbox.Stats, groups []outbox.GroupStats) error {
	if c.JSON {
		out := newLineWriter(std.out)
		out.write(lagLine{s.Messages, s.Groups, s.OldestAge.Seconds(), s.Late, s.Leader, s.Fence})
		for _, g := range groups {
			out.write(lineOf(g))
		}
		return out.flush()
	}
	leader := "no relay leads"
	if s.Leader != "" {
		leader = "relay " + s.Leader + " leads"
	}
	fmt.Fprintf(std.out, "%s in %s, %d late, the oldest added %s ago; %s\n", counted(int(s.Messages), "message"), counted(int(s.Groups), "group"), s.Late, ago(s.OldestAge), leader)
	if len(groups) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "GROUP\tMESSAGES\tFIRST\tAGE\tSTATE")
	for _, g := range groups {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\n", g.Group, g.Messages, g.Position, ago(g.Age), lineOf(g).State)
	}
	return t.Flush()
}

type outboxStuckCmd struct {
	outboxFlags `embed:""`

	Age  time.Duration `default:"1m" placeholder:"TIME" help:"A group is stuck when its first message was added this long ago (default ${default})."`
	JSON bool          `name:"json" help:"Print one JSON object for each group and for each late message behind its first one."`
}

func (*outboxStuckCmd) Help() string {
	return `Prints the groups whose first message is late, or was added --age ago and is still there, with the reason as far as the database has it:

	late        an attempt may have stored it so long ago that SQS may not recognise another one. It is held with its group until "outbox resolve" decides
	unanswered  an attempt has no answer yet; a relay sends it again while SQS recognises it
	waiting     no attempt may have stored it: no relay runs, or SQS refuses it, which the relay's log says

Later messages of a group that are late, too, follow their group.

The exit code is 0 if there is none, 1 if there is one, 2 if the database cannot be read.

Examples:

	sqsfifo outbox stuck orders.db
	sqsfifo outbox stuck orders.db --age 10m --json`
}

// lateLine is the --json output for a late message that is not the first of its group. A
// groupLine describes the first message. Member names are stable.
type lateLine struct {
	Group        string    `json:"group"`
	Position     int64     `json:"position"`
	DedupeKey    string    `json:"dedupe_key,omitempty"`
	EventID      string    `json:"event_id,omitempty"`
	FirstAttempt time.Time `json:"first_attempt"`
	Added        time.Time `json:"added"`
	State        string    `json:"state"`
}

func (c *outboxStuckCmd) run(ctx context.Context, std stdio) error {
	if c.Age < 0 {
		return fmt.Errorf("--age: %v is below 0", c.Age)
	}
	return c.withOutbox(ctx, outbox.SentDelete, func(box *outbox.Outbox) error {
		groups, err := box.Groups(ctx, 0)
		if err != nil {
			return err
		}
		late, err := box.Late(ctx)
		if err != nil {
			return err
		}
		behind := map[string][]outbox.LateMessage{}
		for _, r := range late {
			behind[r.Group] = append(behind[r.Group], r)
		}
		out, stuck := newLineWriter(std.out), 0
		for _, g := range groups {
			if !g.Late() && g.Age < c.Age {
				continue
			}
			stuck++
			c.print(out, lineOf(g), behind[g.Group])
		}
		if err := out.flush(); err != nil {
			return err
		}
		fmt.Fprintf(std.err, "%s stuck, %s late\n", counted(stuck, "group"), counted(len(late), "message"))
		return findingsIf(stuck > 0)
	})
}

func (c *outboxStuckCmd) print(out *lineWriter, g groupLine, late []outbox.LateMessage) {
	out.print(c.JSON, g, "group %s, position %d of %s: %s: %s\n", g.Group, g.Position, counted(int(g.Messages), "message"), g.State, g.Why)
	for _, r := range late {
		if r.Position == g.Position {
			continue
		}
		l := lateLine{Group: r.Group, Position: r.Position, FirstAttempt: r.FirstAttempt, Added: r.Added, State: "late"}
		if r.Message != nil {
			l.DedupeKey, l.EventID = r.Message.DedupeKey, r.Message.EventID.String()
		}
		out.print(c.JSON, l, "group %s, position %d: late, too: it was marked with the first one\n", l.Group, l.Position)
	}
}
