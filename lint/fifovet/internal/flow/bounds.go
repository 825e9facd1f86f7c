package flow

// These constants limit a trace, the backward search for the origins of one value. A value
// beyond a limit counts as unknown, and an unknown value is never a violation. The limits
// also end the search in programs with cycles.
const (
	maxSteps      = 20000 // values in one trace
	MaxCalls      = 4     // nested calls entered by a trace
	maxWrites     = 4096  // values visited in a search for writes to one variable
	maxWriteCalls = 4     // nested calls entered by a search for writes
	maxPath       = 8     // fields and map keys from a value to a part of it
	maxResults    = 16    // parts of a function's results that come from sources
	MaxUnwraps    = 16    // conversions and pointers to look through
	MaxForwards   = 4     // nested functions that pass on a message, or a function argument
	maxElements   = 4     // nested types, in a value that is encoded or printed
	maxErrorFlow  = 4     // variables between a send and the check of its error
	maxChoices    = 10000 // a random number below this limit, as a group, is one of a fixed set
)
