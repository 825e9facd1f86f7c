// Package intests constructs producers in its tests only.
package intests
