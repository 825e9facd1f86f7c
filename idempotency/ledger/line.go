package ledger

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
	"unicode/utf8"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Line is one JSON line of an exported ledger: a [Seal] or an [Entry]. Each seal's line
// precedes the lines of its entries.
type Line struct {
	// Number is the line number in the file, counted from 1. It is 0 if the line was not
	// read from a file.
	Number int

	// Exactly one of Seal and Entry is set.
	Seal  *Seal
	Entry *Entry
}

// maxLine limits the lines accepted by Read, in bytes. A seal of MaxSealed entries takes
// 65,000 bytes; an entry with the longest texts, all escaped, takes 100,000.
const maxLine = 1 << 20

// Some JSON names come from the key specification of the Kansas Frontier Matrix (KFM),
// the others are column names of sqlstore.
type sealLine struct {
	N              int64   `json:"seal"`
	Epoch          int64   `json:"epoch"`
	Fence          int64   `json:"fence"`
	EndTransaction int64   `json:"end_transaction"`
	EndSeq         int64   `json:"end_seq"`
	At             instant `json:"sealed_at"`
	Count          int     `json:"count"`
	Leaves         []byte  `json:"leaves"`
	Previous       Hash    `json:"previous"`
	Hash           Hash    `json:"hash"`
}

type entryLine struct {
	Transaction       int64   `json:"transaction"`
	Seq               int64   `json:"seq"`
	At                instant `json:"timestamp"`
	Event             text    `json:"event"`
	DuplicateDetected bool    `json:"duplicate_detected"`
	ReplayTriggered   bool    `json:"replay_triggered"`
	Scope             text    `json:"scope"`
	Operation         text    `json:"operation_type"`
	Key               text    `json:"idempotency_key"`
	KeyID             string  `json:"key_id"`
	Generation        int64   `json:"generation"`
	ClaimFence        int64   `json:"fence"`
	Attempts          int64   `json:"attempts"`
	Status            text    `json:"status"`
	Resend            bool    `json:"resend"`
	Spec              text    `json:"fingerprint_spec"`
	Request           Hash    `json:"request_hash"`
	Body              Hash    `json:"body_hash"`
	Response          Hash    `json:"response_hash"`
	Dataset           text    `json:"dataset_id"`
	Version           text    `json:"version"`
	SourceURI         text    `json:"source_uri"`
	Checksum          text    `json:"artifact_checksum"`
	CARELabel         text    `json:"care_label"`
	ReplaySafe        bool    `json:"replay_safe"`
	Note              text    `json:"note"`
	Hash              Hash    `json:"hash"`
}

// text marshals as a JSON string if it is valid UTF-8, otherwise as an object with the
// bytes in base64.
type text string

type encoded struct {
	Base64 []byte `json:"base64"`
}

func (t text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(encoded{[]byte(t)})
}

func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var e encoded
		err := json.Unmarshal(b, &e)
		*t = text(e.Base64)
		return err
	}
	return json.Unmarshal(b, (*string)(t))
}

// instant marshals as UTC with six fractional digits.
type instant time.Time

const instantForm = "2006-01-02T15:04:05.000000Z"

func (i instant) MarshalText() ([]byte, error) {
	return time.Time(i).UTC().AppendFormat(nil, instantForm), nil
}

func (i *instant) UnmarshalText(b []byte) error {
	t, err := time.Parse(instantForm, string(b))
	*i = instant(t)
	return err
}

// Append appends l to b as JSON, with a newline.
func (l Line) Append(b []byte) ([]byte, error) {
	var v any
	switch {
	case l.Seal != nil && l.Entry == nil:
		s := l.Seal
		v = sealLine{
			N: s.N, Epoch: s.Epoch, Fence: s.Fence, EndTransaction: s.End.Transaction, EndSeq: s.End.Seq, At: instant(s.At),
			Count: len(s.Entries), Leaves: AppendSealedEntries([]byte{}, s.Entries), Previous: s.Previous, Hash: s.Hash,
		}
	case l.Entry != nil && l.Seal == nil:
		e := l.Entry
		v = entryLine{
			Transaction: e.Transaction, Seq: e.Seq, At: instant(e.At), Event: text(e.Event),
			DuplicateDetected: e.Event == EventDuplicateDetected, ReplayTriggered: e.Event == EventReplayTriggered,
			Scope: text(e.Key.Scope), Operation: text(e.Key.Operation), Key: text(e.Key.Value), KeyID: e.Key.ID().String(),
			Generation: e.Generation, ClaimFence: e.Fence, Attempts: e.Attempts, Status: text(e.Status), Resend: e.Resend,
			Spec: text(e.Fingerprint.Spec), Request: e.Fingerprint.Sum, Body: e.Body, Response: e.Response,
			Dataset: text(e.Dataset.ID), Version: text(e.Dataset.Version), SourceURI: text(e.Dataset.SourceURI),
			Checksum: text(e.Dataset.ArtifactChecksum), CARELabel: text(e.Dataset.CARELabel), ReplaySafe: e.Dataset.ReplaySafe,
			Note: text(e.Note), Hash: e.Hash,
		}
	default:
		return b, errors.New("ledger: a line is either a seal or an entry")
	}
	out, err := json.Marshal(v)
	if err != nil {
		return b, fmt.Errorf("ledger: line: %w", err)
	}
	return append(append(b, out...), '\n'), nil
}

// ParseLine is the inverse of [Line.Append]. It accepts only the exact bytes of Append,
// with or without the newline, because another program might read other bytes differently.
func ParseLine(b []byte) (Line, error) {
	b = bytes.TrimSuffix(b, []byte("\n"))
	var l Line
	var err error
	if bytes.HasPrefix(b, []byte(`{"seal":`)) {
		l.Seal, err = parseSeal(b)
	} else {
		l.Entry, err = parseEntry(b)
	}
	if err != nil {
		return Line{}, err
	}
	again, err := l.Append(nil)
	if err != nil {
		return Line{}, err
	}
	if !bytes.Equal(b, bytes.TrimSuffix(again, []byte("\n"))) {
		return Line{}, errors.New("not in the form of an export")
	}
	return l, nil
}

func parseSeal(b []byte) (*Seal, error) {
	var v sealLine
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, fmt.Errorf("not a seal: %w", err)
	}
	leaves, err := ParseSealedEntries(v.Leaves)
	if err != nil {
		return nil, err
	}
	return &Seal{
		N: v.N, Epoch: v.Epoch, Fence: v.Fence, End: Position{v.EndTransaction, v.EndSeq}, At: time.Time(v.At),
		Entries: leaves, Previous: v.Previous, Hash: v.Hash,
	}, nil
}

func parseEntry(b []byte) (*Entry, error) {
	var v entryLine
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, fmt.Errorf("neither a seal nor an entry: %w", err)
	}
	return &Entry{
		Position: Position{v.Transaction, v.Seq}, At: time.Time(v.At), Event: Event(v.Event),
		Key:        idempotency.Key{Scope: string(v.Scope), Operation: string(v.Operation), Value: string(v.Key)},
		Generation: v.Generation, Fence: v.ClaimFence, Attempts: v.Attempts, Status: string(v.Status), Resend: v.Resend,
		Fingerprint: idempotency.Fingerprint{Spec: string(v.Spec), Sum: v.Request}, Body: v.Body, Response: v.Response,
		Dataset: idempotency.Dataset{
			ID: string(v.Dataset), Version: string(v.Version), SourceURI: string(v.SourceURI),
			ArtifactChecksum: string(v.Checksum), CARELabel: string(v.CARELabel), ReplaySafe: v.ReplaySafe,
		},
		Note: string(v.Note), Hash: v.Hash,
	}, nil
}

// Read yields the lines of an export. A malformed line yields a [*TamperError] with its
// line number; an overlong line yields one with line number 0. Read stops after the first
// error.
func Read(r io.Reader) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxLine)
		lines.Split(splitLines)
		for number := 1; lines.Scan() && lines.Err() == nil; number++ { // a read error can leave half a line
			l, err := ParseLine(lines.Bytes())
			if err != nil {
				yield(Line{}, &TamperError{Kind: FaultAltered, Line: number, Rule: err.Error()})
				return
			}
			l.Number = number
			if !yield(l, nil) {
				return
			}
		}
		if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
			yield(Line{}, &TamperError{Kind: FaultAltered, Rule: fmt.Sprintf("a line of more than %d bytes", maxLine)})
		} else if err != nil {
			yield(Line{}, fmt.Errorf("ledger: read: %w", err))
		}
	}
}

// splitLines splits at newlines only. Carriage returns and an unterminated last line stay
// visible.
func splitLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}
