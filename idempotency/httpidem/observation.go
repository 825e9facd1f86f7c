package httpidem

import "github.com/kansas-frontier-matrix/sqsfifo/idempotency"

// Observation is what a request came to, for metrics, logs and traces.
type Observation struct {
	// Place says where the key is, without its value. It is zero if the request has no
	// valid key and scope.
	Place idempotency.Place

	// Decision is that of the claim, or Undecided if there was none.
	Decision idempotency.Decision

	// Status of the answer; 0 if the handler panicked.
	Status int

	// Problem is the type of the document that was sent instead of an answer of the handler, or "".
	Problem ProblemType

	// Ended is the status of the key after a run: Succeeded, if the answer is stored; Failed,
	// if the request may run again; Running, if the key is in doubt or the store did
	// not confirm. It is Absent if the handler did not run.
	Ended idempotency.Status

	// Retained says that the stored answer has its body, after a run.
	Retained bool

	// Err is why the request was not served as usual, or nil.
	Err error
}
