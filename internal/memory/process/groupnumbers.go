package process

// groupNumbers is a hash table of the highest known sequence number of each message group,
// for at most maxEntries groups. A new group may replace an old group, and a later
// duplicate in the old group may go unnoticed. Unlike a map, the table makes no garbage in
// steady state.
type groupNumbers struct {
	sets []numberSet // length zero or a power of 2
}

type numberSet [entriesPerSet]groupNumber

type groupNumber struct {
	group  uint64 // hash of the message group; zero if the entry is free
	number sequence
}

const (
	entriesPerSet = 8
	minSets       = 8
	maxSets       = 1 << 13
	maxEntries    = maxSets * entriesPerSet // 1 MiB
)

func (w *groupNumbers) set(group uint64) *numberSet { return &w.sets[group&uint64(len(w.sets)-1)] }

// highest returns the highest known sequence number of a group, or zero.
func (w *groupNumbers) highest(group uint64) sequence {
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

// raise records a sequence number of a group if it is higher than the group's recorded
// number.
func (w *groupNumbers) raise(group uint64, number sequence) {
	if number == 0 {
		return
	}
	if len(w.sets) == 0 {
		w.sets = make([]numberSet, minSets)
	}
	for {
		m := w.set(group).place(group)
		if m.group == group {
			m.number = max(m.number, number)
			return
		}
		// Sequence numbers grow with time: at this difference, SQS has forgotten the
		// entry's message.
		stale := number > m.number && number-m.number >= sequenceSpan
		if m.group == 0 || stale || len(w.sets) == maxSets {
			*m = groupNumber{group, number}
			return
		}
		w.grow()
	}
}

// place returns the entry of the group if the set has one, else a free entry, else the
// entry with the lowest number.
func (s *numberSet) place(group uint64) *groupNumber {
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

// grow doubles the number of sets. The entries of each old set are divided between two new
// sets, so each new set has room for them.
func (w *groupNumbers) grow() {
	old := w.sets
	w.sets = make([]numberSet, 2*len(old))
	for i := range old {
		for _, m := range old[i] {
			if m.group != 0 {
				*w.set(m.group).place(m.group) = m
			}
		}
	}
}

func (w *groupNumbers) clear() { w.sets = nil }
