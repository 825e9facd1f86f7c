package outbox

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Place is where a message is, or was, in an outbox.
type Place struct {
	Group    string
	Position int64 // from 1 in each group
}

// Outcome is how a message left an outbox.
type Outcome string

const (
	OutcomeSent      Outcome = "sent"      // SQS stored it
	OutcomeDuplicate Outcome = "duplicate" // SQS had it from an earlier attempt
	OutcomeSettled   Outcome = "settled"   // taken for sent, by Settle or SettleLate
	OutcomeDiscarded Outcome = "discarded" // not to be sent, by Settle
)

// ArchivedRow is a message that left an outbox with [ArchiveSent].
type ArchivedRow struct {
	Place

	// Message is as Add stored it, or nil if the row cannot be decoded; Err says why.
	// BodyHash is the SHA-256 of the body when it was stored, in hexadecimal: it is not
	// compared.
	Message  *sqsfifo.Message
	Err      error
	BodyHash string

	Outcome Outcome

	// MessageID and SequenceNumber are SQS's, "" for a message without a receipt.
	MessageID, SequenceNumber string

	// SQS accepted the message, if it did, after Added and before Settled.
	Added, Settled time.Time
}

// archivePage is how many rows are read at a time.
const archivePage = 500

// Archived yields the archived messages in the order of their groups and positions,
// without a snapshot: one that leaves the outbox, or is purged, while it reads may be
// missed. After an error it ends.
func (o *Outbox) Archived(ctx context.Context) iter.Seq2[ArchivedRow, error] {
	return func(yield func(ArchivedRow, error) bool) {
		var last Place
		for {
			page, err := o.archived(ctx, o.sql.archivedAfter, last.Group, last.Position, archivePage)
			if err != nil {
				yield(ArchivedRow{}, fmt.Errorf("outbox: archived: %w", err))
				return
			}
			for _, r := range page {
				if last = r.Place; !yield(r, nil) {
					return
				}
			}
			if len(page) < archivePage {
				return
			}
		}
	}
}

// ArchivedAt returns the archived messages at the places, in their order. A place that
// has none gets a row whose Position is 0.
func (o *Outbox) ArchivedAt(ctx context.Context, places []Place) ([]ArchivedRow, error) {
	out := make([]ArchivedRow, len(places))
	for begin := 0; begin < len(places); begin += archivePage {
		at := map[Place][]int{}
		var list []completion
		for i, p := range places[begin:min(begin+archivePage, len(places))] {
			if at[p] == nil {
				list = append(list, completion{Group: p.Group, Position: p.Position})
			}
			at[p] = append(at[p], begin+i)
		}
		page, err := o.archived(ctx, o.sql.archivedAt, toJSON(list))
		if err != nil {
			return nil, fmt.Errorf("outbox: archived at: %w", err)
		}
		for _, r := range page {
			for _, i := range at[r.Place] {
				out[i] = r
			}
		}
	}
	return out, nil
}

func (o *Outbox) archived(ctx context.Context, query string, args ...any) (out []ArchivedRow, err error) {
	err = o.read(ctx, func(q queryer) error {
		rows, err := q.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var r ArchivedRow
			var message, hash []byte
			var added, settled int64
			if err := rows.Scan(&r.Group, &r.Position, &message, &hash, &r.Outcome, &r.MessageID, &r.SequenceNumber, &added, &settled); err != nil {
				return err
			}
			r.BodyHash = hex.EncodeToString(hash)
			r.Added, r.Settled = time.UnixMicro(added).UTC(), time.UnixMicro(settled).UTC()
			r.Message = new(sqsfifo.Message)
			if r.Err = json.Unmarshal(message, r.Message); r.Err == nil && r.Message.Body == "" {
				r.Err = errors.New("it has no body")
			}
			if r.Err != nil {
				r.Message = nil
			}
			out = append(out, r)
		}
		return rows.Err()
	})
	return out, err
}
