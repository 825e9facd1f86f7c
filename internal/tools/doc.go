// Package tools has TestHabits, which "make lint" runs to check the repository's comments,
// and report.awk, which prints the results of "make test". The go.mod of the package's module
// pins the tools of "make lint".
package tools
