package fifovet

import (
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// call continues a slice at one result of a call.
func (t *tracer) call(v *ssa.Call, result int, l place) {
	c := v.Common()
	if b, ok := c.Value.(*ssa.Builtin); ok {
		t.builtin(b, v, l)
		return
	}
	callee, fn := calleeOf(c), staticBody(c)
	if held := t.p.held(c.Value); held != nil {
		callee, fn = held.of()
	} else if name, ok := generator(c.Value); ok && callee == nil && fn == nil {
		t.end(origin{kind: fromSource, root: v, text: name, pos: v.Pos(), clock: isTime(v.Type())}, l)
		return
	}
	if callee != nil && (fn == nil || t.p.set.named(callee)) {
		if t.p.set.sourceOf(callee) {
			t.end(origin{kind: fromSource, root: v, text: short(callee), pos: v.Pos(), clock: isClock(callee) || callee.Pkg().Path() == "time"}, l)
			return
		}
		if t.clock(v, callee, l) {
			return
		}
		if isPure(callee) {
			switch q := qualified(callee); {
			case q == "maps.Keys" || q == "maps.Values" || q == "maps.All":
				t.order(v, l)
			case strings.HasPrefix(q, "slices.Sorted") || strings.HasPrefix(q, "maps.Collect"):
				l.settled = true
			}
			t.pure(v, callee, l)
			return
		}
	}
	if fn != nil && (l.frame == nil || l.frame.depth < maxDepth) && !onStack(l.frame, fn) {
		t.body(fn, c, result, l)
		t.memory(v, l, false)
		return
	}
	if callee != nil {
		if fact := t.p.nondetOf(callee); fact != nil && t.fact(fact, v, callee, result, l) {
			return
		}
	}
	t.end(origin{kind: fromPath, root: v, path: l.path, pos: v.Pos()}, l)
	t.memory(v, l, false)
	if t.inputs {
		l = l.mix()
		if c.IsInvoke() {
			t.value(c.Value, l)
		}
		for _, arg := range c.Args {
			t.value(arg, l)
		}
	}
}

// body continues in the callee's return statements.
func (t *tracer) body(fn *ssa.Function, c *ssa.CallCommon, result int, l place) {
	l.frame = t.enter(c, fn, l.frame)
	for _, block := range fn.Blocks {
		if len(block.Instrs) == 0 {
			continue
		}
		if ret, ok := block.Instrs[len(block.Instrs)-1].(*ssa.Return); ok && result < len(ret.Results) {
			if failed(ret) && result < len(ret.Results)-1 {
				continue // what comes with an error is not used
			}
			t.value(ret.Results[result], l)
		}
	}
}

// failed reports whether a return surely returns an error.
func failed(ret *ssa.Return) bool {
	last := ret.Results[len(ret.Results)-1]
	if !types.Identical(last.Type(), types.Universe.Lookup("error").Type()) {
		return false
	}
	switch v := last.(type) {
	case *ssa.MakeInterface:
		return true
	case *ssa.Call:
		callee := calleeOf(v.Common())
		return callee != nil && callee.Pkg() != nil && (qualified(callee) == "fmt.Errorf" || qualified(callee) == "errors.New")
	}
	return false
}

func onStack(f *frame, fn *ssa.Function) bool {
	for ; f != nil; f = f.parent {
		if f.callee == fn {
			return true
		}
	}
	return false
}

func (t *tracer) pure(v *ssa.Call, callee *types.Func, l place) {
	c := v.Common()
	next := l.mix()
	if isIdentity(callee) {
		next = l
	}
	if c.IsInvoke() {
		t.receiver(c.Value, next)
	}
	for i, arg := range c.Args {
		switch {
		case i == 0 && callee.Signature().Recv() != nil:
			t.receiver(arg, next)
		case encodesJSON(callee):
			t.encoded(arg, l)
		default:
			t.value(arg, next)
		}
	}
	t.memory(v, l, false)
}

// receiver follows the object whose method was called together with what was
// written to it before: a hash, a buffer.
func (t *tracer) receiver(v ssa.Value, l place) {
	t.value(v, l)
	if call, ok := v.(*ssa.Call); ok {
		t.memory(call, l, false)
	}
}

func (t *tracer) builtin(b *ssa.Builtin, v *ssa.Call, l place) {
	switch b.Name() {
	case "append":
		t.value(v.Call.Args[0], l)
		if len(v.Call.Args) > 1 {
			t.value(v.Call.Args[1], l)
		}
		t.memory(v, l, false)
	case "min", "max":
		l.settled = true
		for _, arg := range v.Call.Args {
			t.value(arg, l.mix())
		}
	default:
		t.named(v, l)
		if t.inputs {
			for _, arg := range v.Call.Args {
				t.value(arg, l.mix())
			}
		}
	}
}

// fact ends the slice at a function of another package that is known to return
// what a source gave it. It reports whether the wanted part is concerned.
func (t *tracer) fact(fact *nondetFact, v *ssa.Call, callee *types.Func, result int, l place) bool {
	var hit bool
	for _, r := range fact.Results {
		if r.Index != result {
			continue
		}
		part, around := cut(r.Path, l.path)
		if _, within := cut(l.path, r.Path); !within && !around {
			continue
		}
		hit = true
		next := l
		if around && !l.mixed {
			next.under = append(slices.Clone(l.under), part...)
		}
		t.end(origin{kind: fromSource, root: v, text: short(callee) + ", which calls " + r.Source, pos: v.Pos(), clock: r.Clock, mixed: r.Mixed}, next)
	}
	return hit
}

// clock handles the methods of time.Time that cut a reading down: a day or a
// bucket of minutes is the same for a retry, nearly always.
func (t *tracer) clock(v *ssa.Call, callee *types.Func, l place) bool {
	recv := callee.Signature().Recv()
	if recv == nil || !isTime(recv.Type()) || len(v.Call.Args) == 0 {
		return false
	}
	bucket := func() bool {
		t.end(origin{kind: fromBucket, root: v, pos: v.Pos()}, l)
		return true
	}
	switch callee.Name() {
	case "Truncate", "Round":
		if d, ok := constInt(v.Call.Args[1]); ok && d <= 1e9 {
			return false // a second tells nothing apart and brings nothing together
		}
		return bucket()
	case "Year", "Month", "Day", "YearDay", "Weekday", "ISOWeek", "Date", "Location", "Zone", "IsZero":
		return bucket()
	case "Format":
		if layout, ok := constString(v.Call.Args[1]); ok && !strings.Contains(layout, "05") {
			return bucket()
		}
	case "Hour", "Minute", "Second", "Nanosecond", "Clock":
		n := len(t.origins)
		t.value(v.Call.Args[0], l.mix())
		for i := n; i < len(t.origins); i++ {
			t.origins[i].wraps = true
		}
		return true
	}
	return false
}

// secondsPerUnit of what the functions of package time return.
var secondsPerUnit = map[string]float64{
	"Unix": 1, "UnixMilli": 1e-3, "UnixMicro": 1e-6, "UnixNano": 1e-9,
	"Sub": 1e-9, "Since": 1e-9, "Seconds": 1, "Minutes": 60, "Hours": 3600,
}

// minBucket is how many seconds make a bucket: less is a clock reading.
const minBucket = 60

func unitOf(v ssa.Value) float64 {
	switch v := v.(type) {
	case *ssa.Call:
		if callee := calleeOf(v.Common()); callee != nil && callee.Pkg() != nil && callee.Pkg().Path() == "time" {
			return secondsPerUnit[callee.Name()]
		}
	case *ssa.Convert:
		return unitOf(v.X)
	case *ssa.BinOp:
		if d, ok := constInt(v.Y); ok && v.Op == token.QUO {
			return unitOf(v.X) * float64(d)
		}
	}
	return 0
}

func (t *tracer) binary(v *ssa.BinOp, l place) {
	switch v.Op {
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		if !t.inputs {
			t.named(v, l)
			return
		}
	case token.QUO:
		_, fixed := v.Y.(*ssa.Const)
		if unitOf(v) >= minBucket || !fixed && unitOf(v.X) > 0 {
			t.end(origin{kind: fromBucket, root: v, pos: v.Pos()}, l)
			return
		}
	case token.SUB: // now - now%300
		if rem, ok := v.Y.(*ssa.BinOp); ok && rem.Op == token.REM && rem.X == v.X {
			if d, ok := constInt(rem.Y); ok && unitOf(v.X)*float64(d) >= minBucket {
				t.end(origin{kind: fromBucket, root: v, pos: v.Pos()}, l)
				return
			}
		}
	}
	l = l.mix()
	if b, ok := v.Type().Underlying().(*types.Basic); ok && b.Info()&types.IsInteger != 0 {
		l.settled = true // a sum of integers has no order
	}
	t.value(v.X, l)
	t.value(v.Y, l)
}

func constInt(v ssa.Value) (int64, bool) {
	c, ok := v.(*ssa.Const)
	if !ok || c.Value == nil {
		return 0, false
	}
	i := constant.ToInt(c.Value)
	if i.Kind() != constant.Int {
		return 0, false
	}
	return constant.Int64Val(i)
}
