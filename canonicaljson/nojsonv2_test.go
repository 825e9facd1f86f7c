//go:build !goexperiment.jsonv2

package canonicaljson_test

// jsonV2 is false with the original implementation of encoding/json.
const jsonV2 = false
