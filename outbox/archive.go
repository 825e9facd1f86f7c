package outbox

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// RowPlace identifies a message in an outbox, even after the message has left.
type RowPlace struct {
	Group    string
	Position int64 // counts the messages of the group from 1
}

// Outcome is the reason why a message left an outbox.
type Outcome string

const (
	OutcomeSent        Outcome = "sent"         // SQS stored the message
	OutcomeDuplicate   Outcome = "duplicate"    // SQS stored an earlier attempt
	OutcomeAssumedSent Outcome = "assumed_sent" // assumed sent by a call of Resolve or by LateAssumeSent
	OutcomeDiscarded   Outcome = "discarded"    // removed by a call of Resolve, without another send
)

// ArchivedRow is a message that has left an outbox and is in its archive: see
// [SentArchive].
type ArchivedRow struct {
	RowPlace

	// Message is the message stored by Add. If its row cannot be decoded, Message is nil
	// and Err is the reason. BodyHash is the recorded SHA-256 of the body in hexadecimal;
	// Archived does not check it.
	Message  *sqsfifo.Message
	Err      error
	BodyHash string

	Outcome Outcome

	// MessageID and SequenceNumber are the values in SQS's answer, or "" if there was no
	// answer.
	MessageID, SequenceNumber string

	// Added is the time of Add, and Left is the time at which the message left the
	// outbox. If SQS accepted the message, it did so between these times.
	Added, Left time.Time
}

// archivePage is the number of rows per read.
const archivePage = 500

// Archived yields the archived messages ordered by group and position. It reads pages
// without a common snapshot, so it may miss messages archived or purged meanwhile.
// Archived stops after the first error.
func (o *Outbox) Archived(ctx context.Context) iter.Seq2[ArchivedRow, error] {
	return func(yield func(ArchivedRow, error) bool) {
		var last RowPlace
		for {
			page, err := o.archived(ctx, o.sql.archivedAfter, last.Group, last.Position, archivePage)
			if err != nil {
				yield(ArchivedRow{}, fmt.Errorf("outbox: archived: %w", err))
				return
			}
			for _, r := range page {
				if last = r.RowPlace; !yield(r, nil) {
					return
				}
			}
			if len(page) < archivePage {
				return
			}
		}
	}
}

// ArchivedAt returns the archived messages at the given places, in the order of places. For
// a place without an archived message, the returned row has Position 0.
func (o *Outbox) ArchivedAt(ctx context.Context, places []RowPlace) ([]ArchivedRow, error) {
	out := make([]ArchivedRow, len(places))
	for begin := 0; begin < len(places); begin += archivePage {
		at := map[RowPlace][]int{}
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
			for _, i := range at[r.RowPlace] {
				out[i] = r
			}
		}
	}
	return out, nil
}

func (o *Outbox) archived(ctx context.Context, query string, args ...any) (out []ArchivedRow, err error) {
	err = o.each(ctx, func(rows *sql.Rows) error {
		var r ArchivedRow
		var message, hash []byte
		var added, left int64
		if err := rows.Scan(&r.Group, &r.Position, &message, &hash, &r.Outcome, &r.MessageID, &r.SequenceNumber, &added, &left); err != nil {
			return err
		}
		r.BodyHash = hex.EncodeToString(hash)
		r.Added, r.Left = time.UnixMicro(added).UTC(), time.UnixMicro(left).UTC()
		r.Message = new(sqsfifo.Message)
		if r.Err = json.Unmarshal(message, r.Message); r.Err == nil && r.Message.Body == "" {
			r.Err = errors.New("it has no body")
		}
		if r.Err != nil {
			r.Message = nil
		}
		out = append(out, r)
		return nil
	}, query, args...)
	return out, err
}
