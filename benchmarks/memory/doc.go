// Package memory measures what a producer holds: an event that waits, a paused
// message group, a remembered dedupe key, and a long SendBatch. The measurement is a
// test, because only a test can let ten minutes pass at once (testing/synctest):
//
//	go test -count=1 -v -run TestMemory ./memory -keys 900000
//
// It prints a table and fails when a figure is above its bound.
package memory
