package timeline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/page"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// text names the lines whose bodies and attributes the page shows for a finding: of the
// message, and of its related message. The related message is the original of a suppressed
// message, or the other message with the same dedupe key. The recorder does not store
// bodies (see Wanted).
type text struct {
	own, other Place
	with       int // number of the related message; 0 for none
}

// lineOf returns the place of a line in the log itself, because a replay has the same text.
func lineOf(p Place) Place { return Place{File: p.File, Line: p.Line} }

// Wanted returns the lines of the findings with texts and of their related messages, sorted
// by file and line, each once. The caller reads these lines of the log again and passes
// their messages in [Options].Texts. Replay is zero in each Place.
func (r *Recorder) Wanted() []Place {
	var out []Place
	for _, t := range r.texts {
		out = append(out, t.own)
		if t.with > 0 {
			out = append(out, t.other)
		}
	}
	slices.SortFunc(out, func(a, b Place) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) })
	return slices.Compact(out)
}

// packedText is the text of one finding in the page's data. The field With is the number
// of the related message, or 0 for none.
type packedText struct {
	Number     int             `json:"number"`
	With       int             `json:"with"`
	Body       page.Difference `json:"body"`
	Attributes []string        `json:"attributes,omitempty"`
}

func (r *Recorder) packTexts(messages map[Place]sqstest.TimedMessage) []packedText {
	out := []packedText{}
	for number, t := range r.texts {
		own, ok := messages[t.own]
		if !ok {
			continue
		}
		other, ok := messages[t.other]
		if t.with == 0 || !ok {
			other = own
		}
		out = append(out, packedText{number, t.with, page.Differ(own.Body, other.Body), page.Attributes(own.Attributes, other.Attributes)})
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
