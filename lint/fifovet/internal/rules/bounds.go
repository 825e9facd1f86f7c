package rules

// These constants limit the searches of the rules.
const (
	// maxPassOn limits the number of functions that a random value passes through, from
	// its source to an exported function that returns the value.
	maxPassOn = 4

	// maxLift is the largest number of nested calls from a retrying function to the
	// sending function.
	maxLift = 3

	// maxRelated is the largest number of related positions in one finding.
	maxRelated = 10

	// maxKept is the largest number of values that mayBeStored visits.
	maxKept = 200
)
