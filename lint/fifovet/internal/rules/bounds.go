package rules

// These constants limit the searches of the rules.
const (
	maxPassOn  = 4   // nested functions between a random source and an exported result
	maxLift    = 3   // nested callers of a sending function, in the search for a retry
	maxRelated = 10  // related positions in one finding
	maxKept    = 200 // values visited in the search for a call that may store an ID
)
