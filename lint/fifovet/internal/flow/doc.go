// Package flow follows values of Go source backwards: from a value to its constants,
// parameters, clocks and random sources.
//
// A [Program] is the SSA form of one package. [Program.Trace] follows one value backwards;
// this is a trace. It returns the values where the trace ends, as [Origin] values. A trace
// follows fields and map keys separately, and enters functions of the same package. For
// functions of other packages it uses facts (see go/analysis). A value that the trace does
// not reach is unknown.
//
// Package flow knows neither messages nor rules.
package flow
