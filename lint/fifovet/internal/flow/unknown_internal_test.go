package flow

import (
	"go/constant"
	"go/types"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/ssa"
)

// A value that the analysis cannot follow is one origin, however many calls lead to it. If
// the origin was cut off, the next visit adds it again.
func TestUnknownOnce(t *testing.T) {
	tracer := (&Program{}).NewTracer()
	a, b := ssa.NewConst(constant.MakeInt64(1), types.Typ[types.Int]), ssa.NewConst(constant.MakeInt64(2), types.Typ[types.Int])
	for range 1000 {
		for _, v := range []ssa.Value{a, b} {
			tracer.unknown(v, Place{Frame: new(Frame)})
		}
	}
	require.Len(t, tracer.Origins, 2)
	tracer.Origins = tracer.Origins[:1]
	tracer.unknown(a, Place{})
	tracer.unknown(b, Place{})
	require.Len(t, tracer.Origins, 2)
	require.Equal(t, ssa.Value(b), tracer.Origins[1].Root)
}
