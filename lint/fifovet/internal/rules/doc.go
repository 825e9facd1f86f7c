// Package rules applies the linter's rules to Go source. Each rule has one line in the
// table of rules.go. The names of a rule's files begin with the rule's ID.
//
// Three words have a special meaning here:
//
//   - A source is a function with a different result at each call or in each process,
//     such as time.Now, rand.Int or os.Hostname.
//   - A minted value is a value from a source.
//   - A use is the occurrence of a value in a message, for example as the body.
package rules
