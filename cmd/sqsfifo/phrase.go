package main

import (
	"fmt"
	"time"
)

// counted formats a number of things for people.
func counted(n int, thing string) string { return countedAs(n, thing, thing+"s") }

func countedAs(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// stamp formats an instant for people.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// ago formats a duration for people.
func ago(d time.Duration) string {
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Millisecond).String()
}
