package dedup

// watermarks holds the highest sequence number known of each message group, of
// mostMarks groups at the most. It forgets one when it needs the room: then a duplicate
// may go unnoticed, which it may anyway. A table of a few entries a set instead of a
// map: no pointers, no garbage in steady state, 16 bytes a group.
type watermarks struct {
	sets []markSet // their number is zero or a power of 2
}

type markSet [marksPerSet]mark

type mark struct {
	group  uint64 // hash, zero for none
	number sequence
}

const (
	marksPerSet = 8
	leastSets   = 8
	mostSets    = 1 << 13
	mostMarks   = mostSets * marksPerSet // 1 MiB
)

func (w *watermarks) set(group uint64) *markSet { return &w.sets[group&uint64(len(w.sets)-1)] }

// of returns the highest number known of a group, zero for none.
func (w *watermarks) of(group uint64) sequence {
	if len(w.sets) == 0 {
		return 0
	}
	set := w.set(group)
	for i := range set {
		if set[i].group == group {
			return set[i].number
		}
	}
	return 0
}

// raise notes a number of a group, if it is the highest one.
func (w *watermarks) raise(group uint64, number sequence) {
	if number == 0 {
		return
	}
	if len(w.sets) == 0 {
		w.sets = make([]markSet, leastSets)
	}
	for {
		m := w.set(group).place(group)
		if m.group == group {
			m.number = max(m.number, number)
			return
		}
		// Numbers are times: one that is an interval older is of no use any more.
		stale := number > m.number && number-m.number >= sequenceSpan
		if m.group == 0 || stale || len(w.sets) == mostSets {
			*m = mark{group, number}
			return
		}
		w.grow()
	}
}

// place returns the mark of a group, or else one that is free, or else the one with
// the lowest number.
func (s *markSet) place(group uint64) *mark {
	lowest := &s[0]
	for i := range s {
		if s[i].group == group {
			return &s[i]
		}
		if s[i].number < lowest.number {
			lowest = &s[i]
		}
	}
	return lowest
}

// grow doubles the number of sets. The marks of a set go to two, so each has a place.
func (w *watermarks) grow() {
	old := w.sets
	w.sets = make([]markSet, 2*len(old))
	for i := range old {
		for _, m := range old[i] {
			if m.group != 0 {
				*w.set(m.group).place(m.group) = m
			}
		}
	}
}

// clear forgets all marks and gives their memory back.
func (w *watermarks) clear() { w.sets = nil }
