package rules

// These constants limit the searches of the rules.
const (
	// A function may return a random value that another function of the package returned.
	// maxPassOn is the largest number of functions in such a chain, from the random
	// source to an exported function.
	maxPassOn = 4

	// maxLift is the largest number of nested calls from a retrying function to the
	// sending function.
	maxLift = 3

	// maxRelated is the largest number of related positions in one finding.
	maxRelated = 10

	// maxKept is the largest number of values that mayBeStored visits.
	maxKept = 200
)
