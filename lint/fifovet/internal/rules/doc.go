// Package rules applies the linter's rules to Go source. Each rule has one file, and one
// line in the table of rules.go.
//
// A source is a function with a different result at each call or in each process, such as
// a clock, a random generator or os.Hostname. A minted value comes from a source. A use
// is a value that becomes part of a message.
package rules
