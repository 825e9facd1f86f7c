// Package memory measures how much memory a producer uses for a waiting event, a paused
// message group, a remembered dedupe key, and a long SendBatch. The measurement is a
// test, because only a test can use the virtual clock of testing/synctest to skip ten
// minutes:
//
//	go test -count=1 -v -run TestMemory ./memory -keys 900000
//
// The test prints a table and fails if a value exceeds its limit.
package memory
