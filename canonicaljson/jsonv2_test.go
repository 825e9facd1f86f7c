//go:build goexperiment.jsonv2

package canonicaljson_test

// jsonV2 is true if GOEXPERIMENT=jsonv2 replaces the implementation of encoding/json.
const jsonV2 = true
