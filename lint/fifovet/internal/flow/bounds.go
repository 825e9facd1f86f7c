package flow

// These maximums limit a trace, the backward search for the origins of one value, and end
// it in programs with cycles. A value beyond a limit counts as unknown, and an unknown
// value is never a violation.
const (
	maxSteps      = 20000 // values that one trace visits
	MaxCalls      = 4     // depth of nested calls that a trace enters
	maxWrites     = 4096  // values that a search for the writes to one variable visits
	maxWriteCalls = 4     // depth of nested calls that a search for writes enters
	maxPath       = 8     // length of an AccessPath: a.b["c"] has three elements
	maxResults    = 16    // entries of a NondetFact: random or clock-dependent parts of a function's results
	MaxUnwraps    = 16    // conversions, pointers and calls around the value that a search looks for
	MaxForwards   = 4     // depth of nested calls that pass on the same message or function value
	maxElements   = 4     // depth of nested types in a value that is encoded or printed
	maxErrorFlow  = 4     // variables that may hold a send's error before the program checks the error
	maxChoices    = 10000 // rand.IntN(n) with n up to this limit chooses from a fixed set of numbers
)
