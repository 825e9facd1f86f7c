package timeline

import (
	"encoding/base64"
	"encoding/binary"
)

// bins counts the messages of each kind in binCount time intervals of the same width. If
// a message is later than the last interval, the width doubles.
type bins struct {
	start, width int64 // ms
	counts       [kindCount][binCount]uint32
}

const binCount = 2048

func (b *bins) add(at int64, k Kind) {
	if b.width == 0 {
		b.width = 1
	}
	for at-b.start >= b.width*binCount {
		for kind := range b.counts {
			counts := &b.counts[kind]
			for i := range binCount / 2 {
				counts[i] = counts[2*i] + counts[2*i+1]
			}
			clear(counts[binCount/2:])
		}
		b.width *= 2
	}
	b.counts[k][max(at-b.start, 0)/b.width]++
}

type packedBins struct {
	Start  int64    `json:"start"`
	Width  int64    `json:"width"`
	Counts []string `json:"counts"` // for each kind of message, one count per time interval: uvarints in base64
}

func (b *bins) pack() packedBins {
	out := packedBins{Start: b.start, Width: max(b.width, 1)}
	for kind := range b.counts {
		var column []byte
		for _, n := range b.counts[kind] {
			column = binary.AppendUvarint(column, uint64(n))
		}
		out.Counts = append(out.Counts, base64.StdEncoding.EncodeToString(column))
	}
	return out
}

// groups gives each message group a number, and counts the messages of each group by kind.
type groups struct {
	index
	counts [][kindCount]int
	most   int
}

func newGroups() groups { return groups{index: newIndex(), most: MaxGroups} }

const otherGroups = "(all other groups)"

func (g *groups) of(name string) uint32 {
	if _, ok := g.numbers[name]; !ok {
		if len(g.list) >= g.most {
			name = otherGroups
		}
	}
	n := g.index.of(name)
	if n == len(g.counts) {
		g.counts = append(g.counts, [kindCount]int{})
	}
	return uint32(n)
}

func (g *groups) pack() string {
	var out []byte
	for _, counts := range g.counts {
		for _, n := range counts {
			out = binary.AppendUvarint(out, uint64(n))
		}
	}
	return base64.StdEncoding.EncodeToString(out)
}
