package flow

// These constants limit the analysis of one value. A value beyond a limit counts as
// unknown, and an unknown value is never a violation. The limits also end the search in
// programs with cycles.
const (
	maxSteps      = 20000 // values in one backward slice
	MaxCalls      = 4     // nested calls entered by a backward slice
	maxWrites     = 4096  // values visited in a search for writes to one variable
	maxWriteCalls = 4     // nested calls entered by a search for writes
	maxPath       = 8     // fields and keys in one access path
	maxResults    = 16    // parts of a function's results that come from sources
	MaxUnwraps    = 16    // conversions and pointers to look through
	MaxForwards   = 4     // nested functions between a message and its send
	maxElements   = 4     // pointers and slices around an encoded type
	maxErrorFlow  = 4     // variables between a send and the check of its error
	maxChoices    = 10000 // most members of a fixed set of groups
)
