package httpidem

import "github.com/kansas-frontier-matrix/sqsfifo/idempotency"

// Observation is the result of a request, for metrics, logs and traces.
type Observation struct {
	// Place names the key's scope and operation, with a hash instead of the key's value.
	// It is zero without a valid key or a scope.
	Place idempotency.RedactedKey

	// Decision is the decision of the claim, or DecisionNone without a claim.
	Decision idempotency.Decision

	// Status is the answer's status; 0 if the handler panicked.
	Status int

	// Problem is the type of the problem document that the client got instead of the
	// handler's answer. It is empty if the client got no problem document.
	Problem ProblemType

	// Ended is the key's status after a run:
	//
	//   - Succeeded: the answer is stored.
	//   - Failed: the request may run again.
	//   - Running: the outcome is unknown, or the store did not confirm the outcome.
	//   - Absent: the handler did not run.
	Ended idempotency.Status

	// Retained is true if the handler ran and the stored answer includes the body.
	Retained bool

	// Err is the reason why the request was not served as usual, or nil.
	Err error
}
