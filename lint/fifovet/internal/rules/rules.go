package rules

import (
	"slices"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// The IDs of the rules on Go source. Package lint has each rule's wording, severity and
// origin, such as a section of the KFM contract.
const (
	attrOnlyIdentity  = "SF001"
	nondetDedupID     = "SF002"
	constantDedupID   = "SF003"
	constantBody      = "SF004"
	entityKey         = "SF005"
	remintedOnRetry   = "SF006"
	randomGroupID     = "SF007"
	rawSendBypass     = "SF008"
	missingGroupID    = "SF009"
	invalidID         = "SF010"
	fifoDelay         = "SF011"
	volatileBody      = "SF012"
	attrCopiesKey     = "SF013"
	sharedConstantKey = "SF014"
	unreadFailures    = "SF015"
	oneIDTwoBodies    = "SF016"
	unflushedProducer = "SF017"

	// Only the command sqsfifo vet checks this rule: other drivers cache results, and may
	// not notice a change of the tests.
	noComplianceTest = "SF020"
)

// table has one line for each rule, in the order of the IDs.
var table = []struct {
	id    string
	check func(*audit)
}{
	{attrOnlyIdentity, (*audit).attrOnlyIdentity},
	{nondetDedupID, (*audit).nondetDedupID},
	{constantDedupID, (*audit).constantDedupID},
	{constantBody, (*audit).constantBody},
	{entityKey, (*audit).entityKey},
	{remintedOnRetry, (*audit).remintedOnRetry},
	{randomGroupID, (*audit).randomGroupID},
	{rawSendBypass, (*audit).rawSendBypass},
	{missingGroupID, (*audit).missingGroupID},
	{invalidID, (*audit).invalidID},
	{fifoDelay, (*audit).fifoDelay},
	{volatileBody, (*audit).volatileBody},
	{attrCopiesKey, (*audit).attrCopiesKey},
	{sharedConstantKey, (*audit).sharedConstantKey},
	{unreadFailures, (*audit).unreadFailures},
	{oneIDTwoBodies, (*audit).oneIDTwoBodies},
	{unflushedProducer, (*audit).unflushedProducers},
}

// IDs returns the IDs of the rules that the analyzer checks, in order.
func IDs() []string {
	ids := make([]string, 0, len(table))
	for _, r := range table {
		ids = append(ids, r.id)
	}
	return ids
}

func checks(id string) bool { return slices.Contains(IDs(), id) }

// severityOf returns the severity of a rule. A finding may have a lower severity.
func severityOf(id string) lint.Severity {
	r, _ := lint.Lookup(id)
	return r.Severity
}
