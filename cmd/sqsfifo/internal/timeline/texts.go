package timeline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/page"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// text has the log line of a finding (own) and of its related message (other): the original
// of a suppressed message, or an earlier message with the same dedupe key. See
// [Recorder.Wanted].
type text struct {
	own, other Place
	with       int // number of the related message; 0 for none
}

// lineOf returns p with Replay zero, because a replayed message has the text of the
// original line.
func lineOf(p Place) Place { return Place{File: p.File, Line: p.Line} }

// Wanted returns the log lines whose bodies and attributes the page shows. The caller reads
// these lines again and passes the messages in [Options].Texts.
//
// The lines belong to findings, at most MaxTexts of each kind and none of kind Again, and
// to their related messages. Each line occurs once, sorted by file and line number, with
// Replay zero.
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
// of the related message, or 0.
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
		// Errors of one sort have the same text before the first colon. The text after it
		// has values, such as names.
		name, _, _ := strings.Cut(m.Outcome.Err.Error(), ":")
		if runes := []rune(name); len(runes) > 40 {
			name = string(runes[:40])
		}
		return cause{k, name}
	}
	return cause{Kind: k}
}
