// Package memory measures a producer's memory: for a waiting event, a paused message
// group, a remembered dedupe key, and a long SendBatch. The measurement is a test,
// because only a test can skip ten minutes (testing/synctest):
//
//	go test -count=1 -v -run TestMemory ./memory -keys 900000
//
// It prints a table and fails if a figure exceeds its limit.
package memory
