package fifovet

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"
)

// TestShapes runs over programs of the shapes that are seen in the wild.
func TestShapes(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), newAnalyzer(), "example.com/shapes", "example.com/shapes/random", "example.com/shapes/lib", "example.com/shapes/clock")
}

// TestRules runs over bad and good code for each rule.
func TestRules(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), newAnalyzer(), "example.com/rules")
}
