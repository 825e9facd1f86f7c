// Package flow follows values of Go source backwards: from a value to its constants,
// parameters, clocks and random sources.
//
// A [Program] is the SSA form of one package. [Program.Trace] makes a backward slice
// and returns the values where the slice ends as [Origin] values. The slice follows
// fields and map keys separately, enters functions of the same package, and uses facts
// about functions of other packages. A value that the slice does not reach is unknown.
//
// Package flow knows neither messages nor rules.
package flow
