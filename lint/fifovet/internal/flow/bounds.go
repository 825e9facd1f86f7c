package flow

// These limits end a search in programs with cycles. A search that reaches a limit stops,
// so the analyzer may miss a violation.
const (
	// maxSteps is the largest number of values that one trace, a backward search, visits.
	maxSteps = 20000

	// MaxCalls is the largest depth of nested calls that a trace enters.
	MaxCalls = 4

	// Limits of the search for all writes to one variable.
	maxWrites     = 4096 // visited values
	maxWriteCalls = 4    // depth of nested calls

	// maxPath is the largest length of an AccessPath.
	maxPath = 8

	// maxResults is the largest number of results in one FunctionFact.
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

	// maxErrorFlow is the largest number of variables between a send and the test of its
	// error.
	maxErrorFlow = 4
)

// maxChoices is the largest n with which rand.IntN(n) counts as a choice from a fixed set
// of numbers. With a larger n, the number may serve as an ID.
const maxChoices = 10000
