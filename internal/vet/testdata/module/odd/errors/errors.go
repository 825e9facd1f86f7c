// Package errors has the name of a package that the skeleton imports.
package errors

type Event struct{ ID string }
