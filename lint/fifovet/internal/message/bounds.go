package message

// These constants limit the searches for messages. A value beyond a limit is unknown.
const (
	maxSinkPath   = 4    // fields in the path of a parameter in a fact
	maxSinks      = 24   // parameters of one function with a path to messages
	maxMaps       = 4    // maps of attributes, copied from each other
	maxRoot       = 8    // variables between a pointer and the message
	maxPathBlocks = 2000 // blocks visited in a search for a path through a function
)
