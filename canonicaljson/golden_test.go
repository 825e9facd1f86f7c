package canonicaljson_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write testdata/values.txt")

// lossyMethod encodes itself by encoding/json, as most methods MarshalJSON do.
type lossyMethod struct {
	Text  string
	Nil   []int
	Empty map[string]int
	Omit  []int `json:",omitempty"`
	Float float64
}

func (m lossyMethod) MarshalJSON() ([]byte, error) {
	type plain lossyMethod
	return json.Marshal(plain(m))
}

// The bytes of Go values are the same with each version of Go. "make test-newer-go" runs
// the test with another version, and so with another implementation of encoding/json.
func TestGoldenValues(t *testing.T) {
	var out bytes.Buffer
	for _, row := range encodable() {
		text, err := canonicaljson.Marshal(row.value)
		require.NoError(t, err)
		fmt.Fprintf(&out, "%s\t%s\n", row.name, text)
	}
	all := sha256.New()
	refused := 0
	for seed := range uint64(1_000) {
		g := generator{rand.New(rand.NewPCG(seed%250, 8785))}
		v := reflect.New(g.typ(3)).Elem()
		g.r = rand.New(rand.NewPCG(seed, 8785))
		g.fill(v, 4)
		text, err := canonicaljson.Marshal(v.Interface())
		if err != nil {
			refused++
			text = []byte(class(t, err)) // the text of an error names types, and Go renames some
		}
		fmt.Fprintf(all, "%s\n", text)
	}
	fmt.Fprintf(&out, "SHA-256 of the bytes or error classes of 1000 random values, %d of them refused\t%x\n", refused, all.Sum(nil))
	if *update {
		require.NoError(t, os.WriteFile("testdata/values.txt", out.Bytes(), 0o600))
	}
	want, err := os.ReadFile("testdata/values.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}
