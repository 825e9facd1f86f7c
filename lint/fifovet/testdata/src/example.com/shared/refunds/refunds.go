// Package refunds has an event of its own.
package refunds

type Refund struct{ ID string }
