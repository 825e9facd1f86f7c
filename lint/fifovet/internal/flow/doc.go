// Package flow follows values of Go source backwards: from a value to its constants,
// parameters, clocks and random sources.
//
// A [Program] is the SSA form of one package. [Program.Trace] makes a backward slice
// and returns the ends of the slice as [Origin] values. The slice follows fields and
// map keys separately, enters functions of the same package, and uses facts about
// functions of other packages. A value beyond the slice is unknown.
//
// Messages and rules are outside of package flow.
package flow
