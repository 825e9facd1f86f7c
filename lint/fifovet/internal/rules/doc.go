// Package rules decides the rules on Go source: one file for each rule, one line for
// each rule in the table of rules.go.
package rules
