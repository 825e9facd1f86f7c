package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
)

type outboxSettleCmd struct {
	outboxFlags `embed:""`

	Group    string `required:"" placeholder:"GROUP" help:"Message group."`
	Position int64  `required:"" placeholder:"N" help:"Position of its first message, as \"outbox stuck\" prints it."`
	As       string `required:"" enum:"delivered,send-again,discard" placeholder:"VERDICT" help:"delivered, send-again or discard."`
	Archive  bool   `help:"The outbox keeps what leaves it (Config.Sent is ArchiveSent). Without it the message is deleted when it leaves."`
	Yes      bool   `help:"Do it. Without it the message is shown and nothing is changed."`
	JSON     bool   `name:"json" help:"Print one JSON object: group, position and settled_as, or without --yes the group."`
}

// Help returns the manual of the command.
func (*outboxSettleCmd) Help() string {
	return `Decides what becomes of the first message of a group when the relay cannot: one that is late, or one that SQS refuses again and again. Look for its dedupe key at the consumer first.

	delivered   the consumer has it. It leaves the outbox
	send-again  the consumer does not have it, or recognises it. It is sent like a new one, and so are the late messages after it
	discard     it is not to be sent. It leaves the outbox, and its group goes on without it

Nothing is changed without --yes, and nothing that a relay may be sending now. Give --archive and --resend-for as the programs that use the outbox have them.

The exit code is 0 if it is settled, 2 if nothing was changed.

Examples:

	sqsfifo outbox settle orders.db --group p32r29 --position 7 --as delivered --yes
	sqsfifo outbox settle postgres://relay@db.example.org/orders --group p32r29 --position 7 --as send-again --archive --yes`
}

func (c *outboxSettleCmd) run(ctx context.Context, std stdio) (int, error) {
	sent := outbox.DeleteSent
	if c.Archive {
		sent = outbox.ArchiveSent
	}
	var verdict outbox.Verdict
	if err := verdict.UnmarshalText([]byte(c.As)); err != nil {
		return exitFailed, fmt.Errorf("--as: %w", err)
	}
	return c.with(ctx, sent, func(box *outbox.Outbox) (int, error) {
		g, err := c.find(ctx, box)
		if err != nil {
			return exitFailed, err
		}
		if !c.Yes {
			if err := c.show(std, g); err != nil {
				return exitFailed, err
			}
			return exitFailed, errors.New("nothing was changed; --yes settles it")
		}
		switch err := box.Settle(ctx, c.Group, c.Position, verdict); {
		case errors.Is(err, outbox.ErrUnderWay):
			return exitFailed, fmt.Errorf("%w; settle it then", err)
		case err != nil:
			return exitFailed, err
		}
		err = printLine(std.out, c.JSON, settledMessage{c.Group, c.Position, c.As},
			fmt.Sprintf("group %s, position %d: settled as %s", c.Group, c.Position, verdict))
		return exitFailedIf(err), err
	})
}

// settledMessage is the stable form of --json.
type settledMessage struct {
	Group    string `json:"group"`
	Position int64  `json:"position"`
	As       string `json:"settled_as"`
}

// find returns the group if its first message has the position.
func (c *outboxSettleCmd) find(ctx context.Context, box *outbox.Outbox) (outbox.GroupStats, error) {
	groups, err := box.Groups(ctx, 0)
	if err != nil {
		return outbox.GroupStats{}, err
	}
	for _, g := range groups {
		if g.Group != c.Group {
			continue
		}
		if g.Position != c.Position {
			return g, fmt.Errorf("--position: the first message of group %s is at position %d, and it is the one to settle", c.Group, g.Position)
		}
		return g, nil
	}
	return outbox.GroupStats{}, fmt.Errorf("--group: the outbox has no message of group %q", c.Group)
}

func (c *outboxSettleCmd) show(std stdio, g outbox.GroupStats) error {
	l := lineOf(g)
	return printLine(std.out, c.JSON, l,
		fmt.Sprintf("group %s, position %d, added %s ago, dedupe key %s, event ID %s: %s: %s", g.Group, g.Position, ago(g.Age), l.DedupeKey, l.EventID, l.State, l.Why))
}
