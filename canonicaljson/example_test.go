package canonicaljson_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
)

func ExampleCanonicalize() {
	text, err := canonicaljson.Canonicalize([]byte(`{
		"scene": "LC08_L2SP_005009_20150710",
		"cloud_cover": 54.650,
		"bands": ["B4", "\u0042\u0033"]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(text))
	// Output: {"bands":["B4","B3"],"cloud_cover":54.65,"scene":"LC08_L2SP_005009_20150710"}
}

func ExampleCanonicalizeStrict() {
	text := []byte(`{"order":9007199254740993}`)
	rounded, _ := canonicaljson.Canonicalize(text)
	fmt.Println(string(rounded))

	_, err := canonicaljson.CanonicalizeStrict(text)
	fmt.Println(errors.Is(err, canonicaljson.ErrInexactInteger))
	// Output:
	// {"order":9007199254740992}
	// true
}

func ExampleIsCanonical() {
	fmt.Println(canonicaljson.IsCanonical([]byte(`{"a":1,"b":[true,null]}`)))
	fmt.Println(canonicaljson.IsCanonical([]byte(`{"a": 1,"b":[true,null]}`)))
	fmt.Println(canonicaljson.IsCanonical([]byte(`{"b":[true,null],"a":1}`)))
	// Output:
	// true
	// false
	// false
}

func ExampleMarshal() {
	type Scene struct {
		ID    string  `json:"id"`
		Cloud float64 `json:"cloud_cover"`
		Row   int64   `json:"row,string"`
		Note  string  `json:"note,omitempty"`
	}
	text, err := canonicaljson.Marshal(Scene{ID: "LC08<T1>", Cloud: 54.65, Row: 9007199254740993})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(text))
	// Output: {"cloud_cover":54.65,"id":"LC08<T1>","row":"9007199254740993"}
}

func ExampleAppend() {
	buf := make([]byte, 0, 1024)
	for _, text := range []string{`{"b": 1, "a": 2}`, `{"a":2,"b":1.0}`} {
		var err error
		buf, err = canonicaljson.Append(buf[:0], []byte(text))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s %x\n", buf, sha256.Sum256(buf))
	}
	// Output:
	// {"a":2,"b":1} d3626ac30a87e6f7a6428233b3c68299976865fa5508e4267c5415c76af7a772
	// {"a":2,"b":1} d3626ac30a87e6f7a6428233b3c68299976865fa5508e4267c5415c76af7a772
}

func ExampleAppendStrict() {
	body, err := canonicaljson.AppendStrict([]byte("body: "), []byte(` {"big": 295147905179352830000} `))
	fmt.Println(string(body), err)
	// Output: body: {"big":295147905179352830000} <nil>
}

func ExampleAppendValue() {
	text, err := canonicaljson.AppendValue([]byte("payload="), map[string]any{"b": []int{1, 2}, "a": nil})
	fmt.Println(string(text), err)

	_, err = canonicaljson.AppendValue(nil, map[string]any{"total": int64(math.MaxInt64)})
	fmt.Println(err)
	// Output:
	// payload={"a":null,"b":[1,2]} <nil>
	// canonicaljson: value at "/total", Go type int64: integer 9223372036854775807: integer outside ±(2^53-1), where a double holds every integer: encode it as a string (RFC 7493 section 2.2)
}

func ExampleAppendNumber() {
	for _, f := range []float64{1e21, 1e20, 0.000001, 1e-7, math.Copysign(0, -1)} {
		text, err := canonicaljson.AppendNumber(nil, f)
		fmt.Println(string(text), err)
	}
	// Output:
	// 1e+21 <nil>
	// 100000000000000000000 <nil>
	// 0.000001 <nil>
	// 1e-7 <nil>
	// 0 <nil>
}

func ExampleAppendString() {
	text, err := canonicaljson.AppendString(nil, "<tab\t, bell\a, é>")
	fmt.Println(string(text), err)
	// Output: "<tab\t, bell\u0007, é>" <nil>
}

func ExampleError() {
	_, err := canonicaljson.Canonicalize([]byte(`{"payload":{"tiles":[{"id":1,"row":2,"id":3}]}}`))

	var broken *canonicaljson.Error
	if errors.As(err, &broken) {
		fmt.Println(broken.Offset, broken.Pointer, broken.Detail)
	}
	switch {
	case errors.Is(err, canonicaljson.ErrDuplicateName):
		fmt.Println("drop one of the two")
	case errors.Is(err, canonicaljson.ErrInexactInteger), errors.Is(err, canonicaljson.ErrNumberRange):
		fmt.Println("encode it as a string")
	}
	// Output:
	// 37 /payload/tiles/0/id name "id"
	// drop one of the two
}
