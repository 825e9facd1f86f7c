package timeline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/page"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// text has the log line of a finding, and the log line of its related message: the original
// of a suppressed message, or an earlier message with the same dedupe key. The page compares
// both messages.
type text struct {
	finding, related Place
	relatedNumber    int // 0 without a related message
}

// lineOf returns p without the replay number. A replay sends the lines of the log once
// more, so the text of a replayed message is in the line of the first send.
func lineOf(p Place) Place { return Place{File: p.File, Line: p.Line} }

// Wanted returns the log lines of messages with bodies on the page: findings and their
// related messages. The caller reads these lines again for [Options].Texts.
//
// Wanted takes at most [MaxTexts] findings of each kind. It leaves out the kind [Again]: a
// replay sends the same body again, so the page has no difference to show. Each line occurs
// once, sorted by file and line number. The field Replay is 0.
func (r *Recorder) Wanted() []Place {
	var out []Place
	for _, t := range r.texts {
		out = append(out, t.finding)
		if t.relatedNumber > 0 {
			out = append(out, t.related)
		}
	}
	slices.SortFunc(out, func(a, b Place) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) })
	return slices.Compact(out)
}

// packedText is the text of one finding in the page's data.
type packedText struct {
	Number     int             `json:"number"`
	Related    int             `json:"with"` // number of the related message, such as the original; 0 if none
	Body       page.Difference `json:"body"`
	Attributes []string        `json:"attributes,omitempty"`
}

func (r *Recorder) packTexts(messages map[Place]sqstest.TimedMessage) []packedText {
	out := []packedText{}
	for number, t := range r.texts {
		own, ok := messages[t.finding]
		if !ok {
			continue
		}
		other, ok := messages[t.related]
		if t.relatedNumber == 0 || !ok {
			other = own
		}
		out = append(out, packedText{number, t.relatedNumber, page.Differ(own.Body, other.Body), page.Attributes(own.Attributes, other.Attributes)})
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
