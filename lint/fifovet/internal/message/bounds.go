package message

// Bounds of the searches for messages. Beyond a bound a value is unknown.
const (
	maxSinkPath = 4    // fields in a parameter's path, in a fact
	maxSinks    = 24   // arguments of one function that reach messages
	maxMaps     = 4    // maps of attributes copied from each other
	maxRoot     = 8    // variables between a pointer and its message
	maxWays     = 2000 // blocks visited in a search for a path through a function
)
