package main

import (
	"fmt"
	"time"
)

// counted formats a number with a noun, as in "1 event" or "2 events".
func counted(n int, singular string) string { return countedAs(n, singular, singular+"s") }

func countedAs(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// stamp formats a time in UTC, to the second, for messages to people.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// ago formats an age or a waiting time for messages to people.
func ago(d time.Duration) string {
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Millisecond).String()
}
