package message

// These constants limit the analysis of messages. Beyond a limit, the analysis finds
// nothing more.
const (
	// maxSinkPath is the largest number of field names in the path to a part of a
	// parameter, for example two in opts.Message.ID.
	maxSinkPath = 4

	// maxSinks is the largest number of parameters that the analysis records for one
	// function. It records each parameter, or part of a parameter, that goes into a
	// message.
	maxSinks = 24

	// Code may copy attributes from map to map, one after the other. maxMaps is the
	// largest number of such copies in a row that the analysis follows.
	maxMaps = 4

	// The method `rootOf` goes back from a pointer to the creation of the message, step by
	// step, for example from a variable to its value. maxRoot is the largest number of
	// steps.
	maxRoot = 8

	// maxPathBlocks is the largest number of basic blocks that one pathSearch visits.
	maxPathBlocks = 2000
)
