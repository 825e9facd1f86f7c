package rules

// These constants limit the searches of the rules.
const (
	// maxPassOn is the largest number of functions that a random value passes through
	// inside a package, from its source to the result of an exported function.
	maxPassOn = 4

	// maxLift is the largest number of nested calls between a function that retries and the
	// function that sends.
	maxLift = 3

	// maxRelated is the largest number of related positions in one finding.
	maxRelated = 10

	// maxKept is the largest number of values that mayBeStored visits.
	maxKept = 200
)
