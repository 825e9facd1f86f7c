package replay

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"
)

// planVersion is the format version of a written plan.
const planVersion = 1

// maxPlanLine is the maximum size of a line in bytes.
const maxPlanLine = 64 << 10

type planHead struct {
	Version  int       `json:"replay_plan"`
	Source   string    `json:"source"`
	Made     time.Time `json:"made"`
	Options  Options   `json:"options"`
	Excluded int       `json:"excluded"`
}

func (p *PlannedItem) checkWords() error {
	return errors.Join(known("status", p.Status, statuses), known("label", p.Label, labels), known("action", p.Action, actions))
}

type planEnd struct {
	Items int    `json:"items"`
	ID    string `json:"plan"`
}

func (p *Plan) head() planHead {
	return planHead{planVersion, p.Source, p.Made, p.Options, p.Excluded}
}

// lines writes the plan without its last line.
func (p *Plan) lines(w io.Writer) error {
	enc := json.NewEncoder(w)
	if err := enc.Encode(p.head()); err != nil {
		return err
	}
	for i := range p.Items {
		if err := enc.Encode(&p.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) hash() (string, error) {
	sum := sha256.New()
	w := bufio.NewWriter(sum)
	err := p.lines(w)
	if err = errors.Join(err, w.Flush()); err != nil {
		return "", fmt.Errorf("replay: plan: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Write writes the plan as JSON lines: a description, one line per item, and a last line
// with the number of items and the ID. A run sends the items in this order within each
// group.
func (p *Plan) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	if err := p.lines(out); err != nil {
		return fmt.Errorf("replay: plan: %w", err)
	}
	if err := json.NewEncoder(out).Encode(planEnd{len(p.Items), p.ID}); err != nil {
		return fmt.Errorf("replay: plan: %w", err)
	}
	return out.Flush()
}

// ReadPlan reads the output of [Plan.Write]. It returns a [*PlanError] for a changed or
// incomplete plan.
func ReadPlan(r io.Reader) (*Plan, error) {
	d := &planReader{lines: bufio.NewReaderSize(r, maxPlanLine), sum: sha256.New()}
	line, err := d.read()
	if err != nil {
		return nil, err
	}
	var head planHead
	if err := d.decode(line, &head); err != nil {
		return nil, err
	}
	if head.Version != planVersion {
		return nil, &PlanError{d.line, fmt.Sprintf("replay_plan is %d, want %d; make the plan again", head.Version, planVersion), nil}
	}
	p := &Plan{Source: head.Source, Made: head.Made, Options: head.Options, Excluded: head.Excluded}
	if err := p.Options.checkWords(); err != nil {
		return nil, &PlanError{d.line, "not a line of a plan", err}
	}
	if p.Source == "" {
		return nil, &PlanError{d.line, "the source has no name", nil}
	}
	for {
		before := d.sum.Sum(nil)
		line, err := d.read()
		if err != nil {
			return nil, err
		}
		if bytes.HasPrefix(line, []byte(`{"items":`)) {
			var end planEnd
			if err := d.decode(line, &end); err != nil {
				return nil, err
			}
			p.ID = hex.EncodeToString(before)
			if end.Items != len(p.Items) || end.ID != p.ID {
				return nil, &PlanError{d.line, "the items are not those that were written; make the plan again", nil}
			}
			if rest, err := d.lines.ReadByte(); err == nil {
				return nil, &PlanError{d.line + 1, fmt.Sprintf("there is more after the end: %q", rest), nil}
			}
			return p, nil
		}
		var item PlannedItem
		if err := d.decode(line, &item); err != nil {
			return nil, err
		}
		if err := item.checkWords(); err != nil {
			return nil, &PlanError{d.line, "not a line of a plan", err}
		}
		if item.Number != len(p.Items) {
			return nil, &PlanError{d.line, fmt.Sprintf("the item has the number %d, want %d", item.Number, len(p.Items)), nil}
		}
		p.Items = append(p.Items, item)
	}
}

// planReader reads the lines of a plan and computes their hash.
type planReader struct {
	lines *bufio.Reader
	sum   hash.Hash
	line  int
}

func (d *planReader) read() ([]byte, error) {
	line, err := d.lines.ReadSlice('\n')
	d.line++
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, &PlanError{d.line, fmt.Sprintf("longer than %d bytes", maxPlanLine), nil}
	case errors.Is(err, io.EOF):
		return nil, &PlanError{d.line, "the plan is cut off; make it again", nil}
	case err != nil:
		return nil, &PlanError{d.line, "read", err}
	}
	d.sum.Write(line)
	return line, nil
}

// decode decodes a line. It refuses a line that Plan.Write would write in another form,
// because rewriting the plan would change its ID.
func (d *planReader) decode(line []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return &PlanError{d.line, "not a line of a plan", err}
	}
	again, err := json.Marshal(v)
	if err != nil {
		return &PlanError{d.line, "not a line of a plan", err}
	}
	if !bytes.Equal(again, line[:len(line)-1]) {
		return &PlanError{d.line, "not as Plan.Write writes it; make the plan again", nil}
	}
	return nil
}

// PlanError reports an unusable plan.
type PlanError struct {
	Line int // from 1
	Rule string
	Err  error // may be nil
}

func (e *PlanError) Error() string {
	text := fmt.Sprintf("replay: plan: line %d: %s", e.Line, e.Rule)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns Err.
func (e *PlanError) Unwrap() error { return e.Err }
