package main

import (
	"context"
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

type ledgerTrimCmd struct {
	Database   string `arg:"" help:"File of a SQLite database, or a postgres:// URL."`
	ledgerFile `embed:""`

	Yes  bool `help:"Delete the entries."`
	JSON bool `name:"json" help:"Print one JSON object: file, head, and the number of trimmed entries."`
}

// trimmedLine is one line of --json output. Member names are stable.
type trimmedLine struct {
	File    string      `json:"file"`
	Head    ledger.Head `json:"head"`
	Trimmed int64       `json:"trimmed"`
}

func (*ledgerTrimCmd) Help() string {
	return `Verifies an export, and deletes the entries of the database up to the export's last seal. The ledger then begins after that seal. The export is the only copy of the deleted entries: store it first where the users of the database cannot change it.

The head of the export must be a seal of the database. Nothing is deleted without --yes, or if the export was altered. The role needs the right to delete from the tables of the ledger. After an error run the command again.

The exit code is 0 if the entries were deleted, 1 if the export was altered or has no seal, 2 if nothing or only a part was deleted.

Examples:

	sqsfifo ledger trim payments.db november.jsonl --yes
	sqsfifo ledger trim postgres://auditor@db.example.org/payments december.jsonl --after "$(cat november.head)" --yes`
}

func (c *ledgerTrimCmd) run(ctx context.Context, std stdio) (err error) {
	head, err := c.head(std)
	if err != nil {
		return err
	}
	if !c.Yes {
		return fmt.Errorf("nothing was deleted; --yes deletes the entries up to seal %d", head.N)
	}
	db, err := openDatabase(ctx, c.Database)
	if err != nil {
		return err
	}
	defer closing(db.Close, &err)
	l, err := sqlstore.OpenLedger(ctx, db.DB, db.dialect)
	if err != nil {
		return err
	}
	n, err := l.Trim(ctx, head)
	if err != nil {
		return fmt.Errorf("%s were deleted: %w", countedAs(int(n), "entry", "entries"), err)
	}
	return printLine(std.out, c.JSON, trimmedLine{c.shown(), head, n}, fmt.Sprintf("%s deleted up to seal %d", countedAs(int(n), "entry", "entries"), head.N))
}
