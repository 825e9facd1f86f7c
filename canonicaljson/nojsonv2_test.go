//go:build !goexperiment.jsonv2

package canonicaljson_test

// jsonV2 is false without GOEXPERIMENT=jsonv2: encoding/json has its original
// implementation.
const jsonV2 = false
