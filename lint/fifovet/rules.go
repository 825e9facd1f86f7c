package fifovet

import (
	"slices"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// The IDs of the rules on source. Their wording, severity and source are in the
// table of package lint.
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

	// noComplianceTest is decided over whole packages with their tests, which
	// an analyzer cannot do soundly: drivers cache its results by package.
	noComplianceTest = "SF020"
)

var checked = []string{
	attrOnlyIdentity, nondetDedupID, constantDedupID, constantBody, entityKey, remintedOnRetry, randomGroupID, rawSendBypass,
	missingGroupID, invalidID, fifoDelay, volatileBody, attrCopiesKey, sharedConstantKey,
}

func checks(id string) bool { return slices.Contains(checked, id) }

// severityOf is the severity of a rule's findings, unless a case calls for less.
func severityOf(id string) lint.Severity {
	r, _ := lint.Lookup(id)
	return r.Severity
}
