package flow

import (
	"go/constant"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// followRounding handles a call of a time.Time method such as Year. It returns false if it
// does not handle the call. A rounded time ends the trace with FromBucket, because a
// retry nearly always computes the same rounded time.
func (t *Tracer) followRounding(v *ssa.Call, callee *types.Func, l Place) bool {
	recv := callee.Signature().Recv()
	if recv == nil || !isTime(recv.Type()) || len(v.Call.Args) == 0 {
		return false
	}
	bucket := func() bool {
		t.end(Origin{Kind: FromBucket, Root: v, Pos: v.Pos()}, l)
		return true
	}
	switch callee.Name() {
	case "Truncate", "Round":
		if d, ok := constInt(v.Call.Args[1]); ok && d <= 1e9 {
			// A time rounded to one second or less is usually different in a retry, so it
			// counts as exact.
			return false
		}
		return bucket()
	case "Year", "Month", "Day", "YearDay", "Weekday", "ISOWeek", "Date", "Location", "Zone", "IsZero":
		return bucket()
	case "Format":
		if layout, ok := ConstString(v.Call.Args[1]); ok && !strings.Contains(layout, "05") {
			return bucket()
		}
	case "Hour", "Minute", "Second", "Nanosecond", "Clock":
		// The hour 15, for example, comes again each day. The field Wraps marks such
		// repeating values.
		n := len(t.Origins)
		t.Value(v.Call.Args[0], l.mix())
		t.mark(n, func(o *Origin) { o.Wraps = true })
		return true
	}
	return false
}

// followZone handles a method of time.Time that sets or ignores the time zone. The zone of
// the machine, as in at.Local(), is an origin of its own.
func (t *Tracer) followZone(v *ssa.Call, callee *types.Func, l Place) Place {
	if recv := callee.Signature().Recv(); recv == nil || !isTime(recv.Type()) {
		return l
	}
	local := callee.Name() == "Local"
	switch callee.Name() {
	case "In":
		if load, ok := v.Call.Args[1].(*ssa.UnOp); ok {
			zone, ok := load.X.(*ssa.Global)
			local = ok && zone.Name() == "Local" && zone.Pkg.Pkg.Path() == "time"
		}
	case "Local", "UTC", "Unix", "UnixMilli", "UnixMicro", "UnixNano", "Sub", "Equal", "Before", "After", "Compare":
	default:
		return l
	}
	if local && !l.ignoreOrder {
		t.end(Origin{Kind: FromZone, Root: v, Text: Short(callee), Pos: v.Pos()}, l)
	}
	l.ignoreOrder = true
	return l
}

// secondsPerUnit maps the name of a function or method of package time to the unit of its
// result, in seconds. For example, UnixMilli returns milliseconds, so its unit is 1e-3.
var secondsPerUnit = map[string]float64{
	"Unix": 1, "UnixMilli": 1e-3, "UnixMicro": 1e-6, "UnixNano": 1e-9,
	"Sub": 1e-9, "Since": 1e-9, "Seconds": 1, "Minutes": 60, "Hours": 3600,
}

// minRoundingSeconds separates rounded times from exact clock readings. For example,
// time.Now().Unix()/300 changes only every 300 seconds, so it counts as a rounded time. A
// time that changes after less than minRoundingSeconds counts as an exact clock reading.
const minRoundingSeconds = 60

func unitOf(v ssa.Value) float64 {
	switch v := v.(type) {
	case *ssa.Call:
		if callee := CalleeOf(v.Common()); callee != nil && pathOf(callee) == "time" {
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

func (t *Tracer) binary(v *ssa.BinOp, l Place) {
	switch v.Op {
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		if !t.Inputs {
			t.endAtPath(v, l)
			return
		}
	case token.QUO:
		_, fixed := v.Y.(*ssa.Const)
		if unitOf(v) >= minRoundingSeconds || !fixed && unitOf(v.X) > 0 {
			t.end(Origin{Kind: FromBucket, Root: v, Pos: v.Pos()}, l)
			return
		}
	case token.SUB: // for example now - now%300, which is a rounded time
		if rem, ok := v.Y.(*ssa.BinOp); ok && rem.Op == token.REM && rem.X == v.X {
			if d, ok := constInt(rem.Y); ok && unitOf(v.X)*float64(d) >= minRoundingSeconds {
				t.end(Origin{Kind: FromBucket, Root: v, Pos: v.Pos()}, l)
				return
			}
		}
	}
	n := len(t.Origins)
	defer func() {
		if d, ok := constInt(v.Y); ok && v.Op == token.REM && d <= maxChoices {
			t.mark(n, func(o *Origin) { o.Choice = true })
		}
	}()
	if v.Op == token.ADD && isString(v.Type()) {
		l = l.join()
	} else {
		l = l.mix()
	}
	if b, ok := v.Type().Underlying().(*types.Basic); ok && b.Info()&types.IsInteger != 0 {
		// The order of a map does not change a sum. Treat all integer operations like
		// sums.
		l.ignoreOrder = true
	}
	t.Value(v.X, l)
	t.Value(v.Y, l)
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
