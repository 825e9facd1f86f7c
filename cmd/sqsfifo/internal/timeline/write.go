package timeline

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"html/template"
	"io"
	"slices"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/page"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

var (
	//go:embed assets/timeline.html
	markup string
	//go:embed assets/timeline.css
	style string
	//go:embed assets/data.js
	dataScript string
	//go:embed assets/view.js
	viewScript string
	//go:embed assets/lanes.js
	lanesScript string
	//go:embed assets/findings.js
	findingsScript string
	//go:embed assets/card.js
	cardScript string
	//go:embed assets/control.js
	controlScript string
)

// contents is the data of a page.
type contents struct {
	Files       []string     `json:"files"`
	Scope       string       `json:"scope"`
	IntervalMS  int64        `json:"interval_ms"`
	ReplaysMS   []int64      `json:"replays_ms"`
	Messages    int          `json:"messages"`
	Complete    bool         `json:"complete"` // the page shows all messages of the log
	First       int64        `json:"first"`    // ms since 1970
	Last        int64        `json:"last"`
	Kinds       []int        `json:"kinds"` // number of messages by Kind
	Causes      []packCause  `json:"causes"`
	Groups      []string     `json:"groups"`
	GroupCounts string       `json:"group_counts"`
	Bins        packedBins   `json:"bins"`
	Rows        packed       `json:"rows"`
	Begin       int64        `json:"begin"` // ms since 1970, the time of the first row
	HasTexts    bool         `json:"has_texts"`
	Texts       []packedText `json:"texts"`
}

type packCause struct {
	Kind  Kind   `json:"kind"`
	Text  string `json:"text"`
	Count int    `json:"count"`
}

const interval = window.Interval

// Write writes the page. The recorder accepts more messages afterwards.
func (r *Recorder) Write(w io.Writer, o Options) error {
	rows, complete := r.all, r.all != nil
	if !complete {
		rows = r.keptRows()
	}
	c := contents{
		Files: o.Files, Scope: o.Scope, IntervalMS: interval.Milliseconds(), ReplaysMS: []int64{},
		Messages: r.count, Complete: complete, First: r.first, Last: r.last, Kinds: r.kinds[:], Causes: r.packCauses(),
		Groups: r.groups.list, GroupCounts: r.groups.pack(), Bins: r.bins.pack(),
		Rows: rows.pack(complete), Begin: r.first, HasTexts: o.Texts != nil,
	}
	for _, d := range o.Replays {
		c.ReplaysMS = append(c.ReplaysMS, d.Milliseconds())
	}
	if !complete && len(r.kept) > 0 {
		c.Begin = r.kept[0].at
	}
	c.Texts = r.packTexts(o.Texts)
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return page.Document{
		Title: "sqsfifo simulate",
		// #nosec G203 -- a constant
		Markup:  template.HTML(markup),
		Style:   style,
		Scripts: []string{dataScript, viewScript, lanesScript, findingsScript, cardScript, controlScript},
		Data:    data,
	}.Write(w)
}

// keptRows returns the rows of the findings and of their related messages, one row for each
// message, sorted by number.
func (r *Recorder) keptRows() *columns {
	// A message may have several rows. CompactFunc must keep the row of its finding, the
	// only row with flags.
	slices.SortStableFunc(r.kept, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.number, b.number), -cmp.Compare(a.flags, b.flags))
	})
	r.kept = slices.CompactFunc(r.kept, func(a, b row) bool { return a.number == b.number })
	out := newColumns()
	for _, m := range r.kept {
		out.add(m)
	}
	return out
}

func (r *Recorder) packCauses() []packCause {
	out := []packCause{}
	for c, n := range r.causes {
		out = append(out, packCause{c.Kind, c.Text, n})
	}
	slices.SortFunc(out, func(a, b packCause) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), -cmp.Compare(a.Count, b.Count), cmp.Compare(a.Text, b.Text))
	})
	return out
}
