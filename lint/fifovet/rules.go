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

// severities are those of the rules that have no form on messages, for as long
// as the table of package lint does not have them; where it does, it decides.
var severities = map[string]lint.Severity{
	nondetDedupID: lint.Error, constantDedupID: lint.Error, constantBody: lint.Warning, entityKey: lint.Info,
	remintedOnRetry: lint.Error, randomGroupID: lint.Warning, rawSendBypass: lint.Warning, volatileBody: lint.Warning,
	attrCopiesKey: lint.Info, sharedConstantKey: lint.Warning,
}

func severityOf(id string) lint.Severity {
	if r, ok := lint.Lookup(id); ok {
		return r.Severity
	}
	return severities[id]
}
