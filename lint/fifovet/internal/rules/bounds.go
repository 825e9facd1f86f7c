package rules

// Bounds of the rules.
const (
	maxHandsOn = 4   // functions that pass a source on, in the fast check
	maxLift    = 3   // callers of a sending function, in the search for a retry
	maxRelated = 10  // related positions of one finding
	maxKept    = 200 // values visited in the search for a store of an ID
)
