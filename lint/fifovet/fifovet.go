package fifovet

import "github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/rules"

// Analyzer reports violations of the rules on Go source, except SF020. It has no state
// except its flags, and a driver may run it on several packages in parallel.
var Analyzer = rules.New()
