package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
)

type outboxResolveCmd struct {
	outboxFlags `embed:""`

	Group    string `required:"" placeholder:"GROUP" help:"Message group."`
	Position int64  `required:"" placeholder:"N" help:"Position of its first message, as \"outbox stuck\" prints it."`
	As       string `required:"" enum:"took_effect,no_effect,give_up" placeholder:"RESOLUTION" help:"took_effect, no_effect or give_up."`
	Archive  bool   `help:"The outbox keeps what leaves it (Config.Sent is SentArchive). Without it the message is deleted when it leaves."`
	Yes      bool   `help:"Do it. Without it the message is shown and nothing is changed."`
	JSON     bool   `name:"json" help:"Print one JSON object: group, position and resolution, or without --yes the group."`
}

func (*outboxResolveCmd) Help() string {
	return `Decides about the first message of a group when the relay cannot: one that is late, or one that SQS refuses again and again. Look for its dedupe key at the consumer first.

	took_effect  the consumer has it. It leaves the outbox
	no_effect    the consumer does not have it, or recognises it. It is sent like a new one, and so are the late messages after it
	give_up      it is not to be sent. It leaves the outbox, and its group goes on without it

Nothing is changed without --yes, and nothing that a relay may be sending now. Give --archive and --resend-for as the programs that use the outbox have them.

The exit code is 0 if it is resolved, 2 if nothing was changed.

Examples:

	sqsfifo outbox resolve orders.db --group p32r29 --position 7 --as took_effect --yes
	sqsfifo outbox resolve postgres://relay@db.example.org/orders --group p32r29 --position 7 --as no_effect --archive --yes`
}

func (c *outboxResolveCmd) run(ctx context.Context, std stdio) error {
	sent := outbox.SentDelete
	if c.Archive {
		sent = outbox.SentArchive
	}
	return c.withOutbox(ctx, sent, func(box *outbox.Outbox) error {
		g, err := c.find(ctx, box)
		if err != nil {
			return err
		}
		if !c.Yes {
			if err := c.show(std, g); err != nil {
				return err
			}
			return errors.New("nothing was changed; --yes resolves it")
		}
		switch err := box.Resolve(ctx, c.Group, c.Position, idempotency.Resolution(c.As)); {
		case errors.Is(err, outbox.ErrUnderWay):
			return fmt.Errorf("%w; resolve it then", err)
		case err != nil:
			return err
		}
		return printLine(std.out, c.JSON, resolvedMessage{c.Group, c.Position, c.As},
			fmt.Sprintf("group %s, position %d: resolved as %s", c.Group, c.Position, c.As))
	})
}

// resolvedMessage is the --json output of the command. Member names are stable.
type resolvedMessage struct {
	Group    string `json:"group"`
	Position int64  `json:"position"`
	As       string `json:"resolution"`
}

// find returns the message group of the flag --group. If the first message is not at the
// flag --position, find returns an error: only the first message can be resolved.
func (c *outboxResolveCmd) find(ctx context.Context, box *outbox.Outbox) (outbox.GroupStats, error) {
	groups, err := box.Groups(ctx, 0)
	if err != nil {
		return outbox.GroupStats{}, err
	}
	for _, g := range groups {
		if g.Group != c.Group {
			continue
		}
		if g.Position != c.Position {
			return g, fmt.Errorf("--position: the first message of group %s is at position %d, and it is the one to resolve", c.Group, g.Position)
		}
		return g, nil
	}
	return outbox.GroupStats{}, fmt.Errorf("--group: the outbox has no message of group %q", c.Group)
}

func (c *outboxResolveCmd) show(std stdio, g outbox.GroupStats) error {
	l := lineOf(g)
	return printLine(std.out, c.JSON, l,
		fmt.Sprintf("group %s, position %d, added %s ago, dedupe key %s, event ID %s: %s: %s", g.Group, g.Position, ago(g.Age), l.DedupeKey, l.EventID, l.State, l.Why))
}
