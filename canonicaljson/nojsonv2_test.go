//go:build !goexperiment.jsonv2

package canonicaljson_test

// jsonV2: encoding/json is the implementation of GOEXPERIMENT=jsonv2.
const jsonV2 = false
