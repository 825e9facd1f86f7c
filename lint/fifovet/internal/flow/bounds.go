package flow

// These limits end a search in programs with cycles. A search that reaches a limit stops,
// so the analyzer may miss a violation.
const (
	// maxSteps is the largest number of values that one trace visits. A trace is the
	// backward search for the origins of one value.
	maxSteps = 20000

	// MaxCalls is the largest depth of nested calls that a trace enters.
	MaxCalls = 4

	// Another search finds all writes to one variable. It visits at most maxWrites
	// values, and enters nested calls to the depth maxWriteCalls.
	maxWrites     = 4096
	maxWriteCalls = 4

	// maxPath is the largest length of an AccessPath.
	maxPath = 8

	// maxResults is the largest number of entries in one NondetFact. Each entry is a part
	// of a function's results that comes from a clock or a random source.
	maxResults = 16

	// MaxUnwraps is the largest number of steps from a value back to the value that it
	// was made from. A step leads, for example, through a conversion, a pointer or a
	// call.
	MaxUnwraps = 16

	// MaxForwards is the largest depth of nested calls through which the analysis follows
	// one argument: a message, or a function.
	MaxForwards = 4

	// maxTypeDepth limits how deep the analysis looks into nested types, such as a struct
	// in a slice in a struct.
	maxTypeDepth = 4

	// maxErrorFlow is the largest number of variables through which the analysis follows
	// the error of a send, from the send to the test of the error.
	maxErrorFlow = 4
)

// maxChoices is the largest n with which rand.IntN(n) counts as a choice from a fixed set
// of numbers. With a larger n, the number may serve as an ID.
const maxChoices = 10000
