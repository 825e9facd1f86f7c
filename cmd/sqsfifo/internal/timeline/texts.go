package timeline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/page"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// text has the bodies and attributes to show for a finding: of the message, and of its
// related message. The related message is the original of a suppressed message, or the
// other message with the same dedupe key. The recorder does not store bodies, so contents
// is empty until a call of SetTexts (see Wanted).
type text struct {
	own, other Place
	with       int // number of the related message; 0 for none
	contents   [2]sqstest.TimedMessage
	has        [2]bool
}

// Wanted returns the lines of the findings with texts and of their related messages, sorted
// by file and line, each once. The caller reads these lines of the log again and passes
// their messages to SetTexts. Replay is zero in each Place, because a replay has the same
// text.
func (r *Recorder) Wanted() []Place {
	var out []Place
	for _, t := range r.texts {
		out = append(out, Place{File: t.own.File, Line: t.own.Line})
		if t.with > 0 {
			out = append(out, Place{File: t.other.File, Line: t.other.Line})
		}
	}
	slices.SortFunc(out, func(a, b Place) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) })
	return slices.Compact(out)
}

// SetTexts stores the messages of the lines from Wanted. The function argument returns
// the message of a line, or false if it is not available.
func (r *Recorder) SetTexts(of func(Place) (sqstest.TimedMessage, bool)) {
	for _, t := range r.texts {
		t.contents[0], t.has[0] = of(Place{File: t.own.File, Line: t.own.Line})
		if t.with > 0 {
			t.contents[1], t.has[1] = of(Place{File: t.other.File, Line: t.other.Line})
		}
	}
}

// packedText is the text of one finding in the page's data. The field With is the number
// of the related message, or 0 for none.
type packedText struct {
	Number     int             `json:"number"`
	With       int             `json:"with"`
	Body       page.Difference `json:"body"`
	Attributes []string        `json:"attributes,omitempty"`
}

func (r *Recorder) packTexts() []packedText {
	out := []packedText{}
	for number, t := range r.texts {
		if !t.has[0] {
			continue
		}
		p := packedText{Number: number, With: t.with}
		own := t.contents[0]
		switch {
		case t.with > 0 && t.has[1]:
			p.Body = page.Differ(own.Body, t.contents[1].Body)
			p.Attributes = page.Attributes(own.Attributes, t.contents[1].Attributes)
		default:
			p.Body = page.Differ(own.Body, own.Body)
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b packedText) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

// causeOf returns the cause of a finding. Findings with the same cause are one group in the
// page's list.
func causeOf(k Kind, m Message) cause {
	switch k {
	case Lost:
		return cause{k, "other " + strings.Join(m.Outcome.Lost, " and ")}
	case Refused:
		// The text before the first colon is the same for all errors of one sort; the rest
		// has values.
		name, _, _ := strings.Cut(m.Outcome.Err.Error(), ":")
		if runes := []rune(name); len(runes) > 40 {
			name = string(runes[:40])
		}
		return cause{k, name}
	}
	return cause{Kind: k}
}
