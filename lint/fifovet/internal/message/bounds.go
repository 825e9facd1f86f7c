package message

// These constants limit the searches for messages. A value beyond a limit is unknown.
const (
	maxSinkPath   = 4    // fields from a parameter to the part used in a message
	maxSinks      = 24   // parameters, or parts of parameters, of one function in messages
	maxMaps       = 4    // maps of attributes, each copied from the next
	maxRoot       = 8    // variables between a pointer and the message
	maxPathBlocks = 2000 // basic blocks visited in one pathSearch
)
