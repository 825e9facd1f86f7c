//go:build race

package canonicaljson_test

const raceEnabled = true
