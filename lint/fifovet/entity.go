package fifovet

import (
	"fmt"
	"go/constant"
	"go/token"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// entityKey is SF005.
func (p *program) entityKey(r *reporter, u *use) {
	if u.m == nil || len(u.m.sets[roleGroup]) == 0 {
		return
	}
	group := u.m.sets[roleGroup][0].value
	dedupNames := names(u.slice.origins)
	same := len(dedupNames) > 0 && slices.Equal(dedupNames, names(p.trace(group, nil, false).origins))
	if !same {
		varies := false
		same = sameExpression(u.value, group, &varies) && varies
	}
	if !same {
		return
	}
	r.report(finding{
		rule: entityKey, fn: u.fn, pos: u.pos, arg: u.arg,
		text: u.name() + " is the group ID: it names the entity and not the event, so two events of one entity within five minutes become one; add what tells them apart",
	})
}

// sameExpression reports whether two values are computed in the same way from the
// same values, by the same functions, which may be called twice. varies is set
// where something goes in that is not known here, such as a parameter. A function
// whose name says that it makes something is no way to the same value.
func sameExpression(a, b ssa.Value, varies *bool) bool {
	switch a := a.(type) {
	case *ssa.Const:
		b, ok := b.(*ssa.Const)
		if !ok || a.IsNil() || b.IsNil() {
			return ok && a.IsNil() == b.IsNil()
		}
		return a.Value != nil && b.Value != nil && constant.Compare(a.Value, token.EQL, b.Value)
	case *ssa.Call:
		b, ok := b.(*ssa.Call)
		return ok && sameCall(&a.Call, &b.Call, varies)
	case *ssa.UnOp:
		b, ok := b.(*ssa.UnOp)
		return ok && a.Op == b.Op && sameExpression(a.X, b.X, varies)
	case *ssa.BinOp:
		b, ok := b.(*ssa.BinOp)
		return ok && a.Op == b.Op && sameExpression(a.X, b.X, varies) && sameExpression(a.Y, b.Y, varies)
	case *ssa.FieldAddr:
		b, ok := b.(*ssa.FieldAddr)
		return ok && a.Field == b.Field && sameExpression(a.X, b.X, varies)
	case *ssa.Field:
		b, ok := b.(*ssa.Field)
		return ok && a.Field == b.Field && sameExpression(a.X, b.X, varies)
	case *ssa.Extract:
		b, ok := b.(*ssa.Extract)
		return ok && a.Index == b.Index && sameExpression(a.Tuple, b.Tuple, varies)
	case *ssa.Convert:
		b, ok := b.(*ssa.Convert)
		return ok && sameExpression(a.X, b.X, varies)
	case *ssa.Parameter, *ssa.FreeVar, *ssa.Alloc:
		*varies = true
		return a == b
	}
	return false
}

func sameCall(a, b *ssa.CallCommon, varies *bool) bool {
	callee := a.StaticCallee()
	if callee == nil || callee != b.StaticCallee() || makes.MatchString(callee.Name()) {
		return false
	}
	for i := range a.Args {
		if !sameExpression(a.Args[i], b.Args[i], varies) {
			return false
		}
	}
	return true
}

var makes = regexp.MustCompile(`(?i)^(new|next|gen|make|create|mint|rand)`)

// names returns the origins as comparable texts, nil if one of them has no name
// or is only a part of the value.
func names(origins []origin) []string {
	var texts []string
	for _, o := range origins {
		if o.kind == fromConst && !o.mixed && o.text == "" {
			continue
		}
		if o.kind != fromPath || o.mixed {
			return nil
		}
		texts = append(texts, fmt.Sprintf("%p.%s", o.root, strings.Join(o.path, ".")))
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}
