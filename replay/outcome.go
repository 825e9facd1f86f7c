package replay

// Outcome is the result of an item.
type Outcome string

const (
	// OutcomeNone: the item has no outcome yet. Either no run reached the item, or the
	// next run tries it again.
	OutcomeNone Outcome = ""

	// OutcomeSent: SQS stored the item.
	OutcomeSent Outcome = "sent"

	// OutcomeSuppressed: SQS or the producer already had the item and suppressed this
	// attempt as a duplicate.
	OutcomeSuppressed Outcome = "suppressed"

	// OutcomeSkipped: the plan skips the item, an operator gave it up, or an earlier item
	// stopped the group.
	OutcomeSkipped Outcome = "skipped"

	// OutcomeConflict: another message in the plan or at the producer has the item's
	// dedupe key. The item was not sent.
	OutcomeConflict Outcome = "conflict"

	// OutcomeDrift: the message differs from what the source or the plan recorded about it.
	// It was not sent.
	OutcomeDrift Outcome = "drift"

	// OutcomeUnresolved: SQS may have stored the item. If it is resent, SQS might deliver
	// it twice.
	OutcomeUnresolved Outcome = "unresolved"

	// OutcomeFailed: SQS certainly did not store the item.
	OutcomeFailed Outcome = "failed"
)

var outcomes = []Outcome{OutcomeSent, OutcomeSuppressed, OutcomeSkipped, OutcomeConflict, OutcomeDrift, OutcomeUnresolved, OutcomeFailed}

// outcomeOfAction has the outcomes of items that are not sent.
var outcomeOfAction = map[Action]Outcome{ActionSkip: OutcomeSkipped, ActionUnresolved: OutcomeUnresolved, ActionConflict: OutcomeConflict, ActionDrift: OutcomeDrift}

// Stops reports whether an item with the outcome stops its group: a conflicting, drifted,
// unresolved or failed item.
func (o Outcome) Stops() bool {
	return o == OutcomeConflict || o == OutcomeDrift || o == OutcomeUnresolved || o == OutcomeFailed
}

// groupContinues reports whether the group's next item may be sent after an item with the
// outcome.
func (o Outcome) groupContinues() bool { return o != OutcomeNone && !o.Stops() }
