package flow

// These constants limit the analysis of one value. A value beyond a limit is unknown,
// and an unknown value is never a violation. In programs with cycles the limits end the
// search.
const (
	maxSteps      = 20000 // values of one slice
	MaxCalls      = 4     // calls that a slice enters, nested
	maxWrites     = 4096  // values visited by a search for writes to one memory
	maxWriteCalls = 4     // calls that such a search enters
	maxPath       = 8     // nested fields and keys in a path
	maxResults    = 16    // minted parts of results of one function
	MaxUnwraps    = 16    // conversions and pointers to look through
	MaxForwards   = 4     // nested functions that only send
	maxElements   = 4     // pointers and slices around an encoded type
	maxErrorFlow  = 4     // variables between a send and the check of its error
	maxChoices    = 10000 // members of a fixed set of groups
)
