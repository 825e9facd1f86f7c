package message

// These constants limit the analysis of messages. Beyond a limit, the analysis finds
// nothing more.
const (
	// maxSinkPath is the largest number of field names that select the part of a
	// parameter that goes into a message, for example two in opts.Message.ID.
	maxSinkPath = 4

	// maxSinks is the largest number of parameters, or their parts, recorded for one
	// function because they go into messages.
	maxSinks = 24

	// maxMaps is the largest number of copies that the analysis follows from one map with
	// attributes to another.
	maxMaps = 4

	// maxRoot is the largest number of rootOf's steps, from a pointer back to the place
	// where the message was made. From a variable to its value is one step.
	maxRoot = 8

	// maxPathBlocks is the largest number of basic blocks that one pathSearch visits.
	maxPathBlocks = 2000
)
