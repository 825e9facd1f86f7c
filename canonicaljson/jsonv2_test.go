//go:build goexperiment.jsonv2

package canonicaljson_test

// jsonV2 is true with the new implementation of encoding/json: in Go 1.27, and in Go 1.26
// with GOEXPERIMENT=jsonv2.
const jsonV2 = true
