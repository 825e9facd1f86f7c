package fifovet

// How far the analysis goes for one question. Beyond a bound a value is unknown,
// and what is unknown is not a violation. Where a program can have cycles, the
// bound is what ends the search.
const (
	maxSteps      = 20000 // values that one slice looks at
	maxCalls      = 4     // calls that a slice enters, one within the other
	maxWrites     = 4096  // places that a search for writes to one piece of memory looks at
	maxWriteCalls = 4     // calls that such a search enters
	maxPath       = 8     // fields and keys that are told apart, one within the other
	maxSinkPath   = 4     // of a parameter's fields, in what is known about a function
	maxSinks      = 24    // arguments that are known to end in messages, for one function
	maxResults    = 16    // parts of results that are known to be minted, for one function
	maxHandsOn    = 4     // functions through which a source may be handed on, in the fast check
	maxUnwraps    = 16    // conversions and pointers that are looked through
	maxMaps       = 4     // maps of attributes that are copied from each other
	maxRoot       = 8     // variables between a pointer and the message that it means
	maxForwards   = 4     // functions that only send, one within the other
	maxElements   = 4     // pointers and slices around an encoded type
	maxErrorFlow  = 4     // variables between a send and the check of its error
	maxWays       = 2000  // blocks on the ways through a function, to see what one of them leaves out
	maxLift       = 3     // callers of a function that sends, to see whether one of them tries again
	maxChoices    = 10000 // members of a fixed set of groups
	maxRelated    = 10    // positions that are listed with one finding
	maxKept       = 200   // values that are looked at to see whether an ID is stored
)
