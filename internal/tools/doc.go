// Package tools has only TestHabits, which "make lint" runs to check the repository's
// comments. The go.mod of the package's module pins the tools of "make lint".
package tools
