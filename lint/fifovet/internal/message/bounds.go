package message

// These constants limit the analysis of messages. Beyond a limit, the analysis finds
// nothing more.
const (
	// maxSinkPath is the largest length of a field path, such as two for opts.Message.ID.
	maxSinkPath = 4

	// maxSinks is the largest number of parameters, or parts of parameters, recorded for
	// one function.
	maxSinks = 24

	// maxMaps is the largest number of copies of one attribute in a row, each from one map
	// to the next.
	maxMaps = 4

	// maxRoot is the largest number of steps from a pointer back to the creation of the
	// message.
	maxRoot = 8

	// maxPathBlocks is the largest number of basic blocks that one pathSearch visits.
	maxPathBlocks = 2000
)
