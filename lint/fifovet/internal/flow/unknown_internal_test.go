package flow

import (
	"go/constant"
	"go/types"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/ssa"
)

// A value that the analysis cannot follow is one origin, however many call paths lead to it
// from one call. If the origin was cut off, the next visit adds it again.
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

	tracer.Origins[1].Kind = FromPath // the trace has ended at b in another way
	tracer.unknown(b, Place{})
	require.Len(t, tracer.Origins, 3)

	// The rules tell these apart: another part of the value, a computed value, another call.
	call := tracer.Enter(new(ssa.Call), nil, nil)
	for _, l := range []Place{{Under: AccessPath{"ID"}}, {Mixed: true}, {Frame: call}, {Frame: tracer.Enter(new(ssa.Call), nil, call)}} {
		tracer.unknown(a, l)
	}
	require.Len(t, tracer.Origins, 6)
}
