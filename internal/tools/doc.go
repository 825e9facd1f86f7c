// Package tools has only the test of "make lint" for comments. The go.mod of its module
// pins the tools of "make lint".
package tools
