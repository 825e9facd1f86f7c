// Package rules applies the rules on Go source. Each rule has one file, and one line in
// the table of rules.go.
package rules
