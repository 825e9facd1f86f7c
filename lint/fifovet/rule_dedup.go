package fifovet

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// checkIDs reports what is wrong with the deduplication ID and the other members of
// an identity.
func (p *program) checkIDs(r *reporter, u *use) {
	if u.evidence == notFIFO {
		return
	}
	switch u.role {
	case roleDedup, roleEventID, roleTime:
		if o, ok := u.slice.any(fromSource); ok {
			p.minted(r, u, o)
			return
		}
		if u.role == roleDedup {
			p.constantID(r, u)
			p.bodyAsID(r, u)
			p.legalID(r, u)
			p.entityKey(r, u)
		}
	case roleGroup:
		p.legalID(r, u)
	}
}

// causeOf is the same for all that one call of a source reaches, and for all that
// one function of the program mints.
func (p *program) causeOf(o origin) any {
	if call, ok := o.root.(*ssa.Call); ok && o.frame == nil {
		if callee := calleeOf(call.Common()); callee != nil && callee.Pkg() != nil && strings.Contains(o.text, sourceSeparator) &&
			sameProgram(callee.Pkg().Path(), p.pass.Pkg.Path()) {
			return callee
		}
	}
	return o.root
}

// sameProgram guesses from their paths whether two packages are of one module.
func sameProgram(a, b string) bool { return programOf(a) == programOf(b) }

func programOf(path string) string {
	parts := strings.SplitN(path, "/", 4)
	if len(parts) >= 3 && slices.Contains([]string{"github.com", "gitlab.com", "bitbucket.org"}, parts[0]) {
		return strings.Join(parts[:3], "/")
	}
	return parts[0]
}

// name is the field as the reader knows it, with the function that leads there.
func (u *use) name() string {
	if u.via == nil || u.payload {
		return u.field
	}
	return u.field + " (through " + short(u.via) + ")"
}

// minted is SF002.
func (p *program) minted(r *reporter, u *use, o origin) {
	if _, bucket := u.slice.any(fromBucket); bucket && o.wraps {
		return // the date and the hour: what comes again is told apart
	}
	f := finding{rule: nondetDedupID, fn: u.fn, pos: u.pos, arg: u.arg, source: o, maybe: u.evidence == maybeFIFO, what: u.field, cause: p.causeOf(o)}
	switch {
	case u.role == roleEventID:
		f.text = fmt.Sprintf("EventID comes from %s: it is part of the body, so each attempt is another event to SQS; leave it out, it is derived from the event", o.text)
		f.fix = fixRemove
	case u.role == roleTime:
		f.text = fmt.Sprintf("Time comes from %s: it is part of the body, so each attempt is another event to SQS; use the time at which the event occurred", o.text)
	case o.wraps:
		f.lower(lint.Warning)
		f.text = fmt.Sprintf("%s comes from %s, of which only a part that comes again is used: it neither recognises a retry nor tells two events apart; derive it from the event",
			u.name(), o.text)
	case p.fallback(u):
		f.lower(lint.Warning)
		f.text = fmt.Sprintf("%s falls back to %s: a caller that gives none has every retry stored as a new message, and is not told; refuse an empty ID or derive it from the event",
			u.name(), o.text)
	case p.carried(u, o):
		f.lower(lint.Warning)
		f.text = fmt.Sprintf("%s comes from %s and the body carries it: the ID is minted here, so a retry by the caller will not be deduplicated; take the ID from the event",
			u.name(), o.text)
		if p.set.strict {
			f.lower(lint.Error)
		} else if !o.clock && p.kept(u, o) {
			f.lower(lint.Info)
			f.text = fmt.Sprintf("%s comes from %s, which the body carries and other code gets as well: if that code does not store it, a retry by the caller will not be deduplicated",
				u.name(), o.text)
		}
	case !o.clock && p.attached(u, o) && p.kept(u, o):
		f.lower(lint.Info)
		f.text = fmt.Sprintf("%s comes from %s, which an attribute carries and other code gets as well: if that code does not store it, a retry by the caller will not be deduplicated",
			u.name(), o.text)
	default:
		f.text = fmt.Sprintf("%s comes from %s: each attempt has another ID, so SQS stores every retry as a new message; derive it from the event",
			u.name(), o.text)
	}
	r.report(f)
}

// fallback reports whether the minted ID is only one of several: the others
// come from the caller.
func (p *program) fallback(u *use) bool {
	if u.m != nil {
		for _, s := range u.m.all(u.role) {
			if _, minted := p.trace(s.value, nil, false).any(fromSource); !minted && !isEmpty(s.value) {
				return true
			}
		}
	}
	v := u.value
	for range maxUnwraps {
		switch x := v.(type) {
		case *ssa.Call:
			callee := calleeOf(x.Common())
			if callee == nil || !isIdentity(callee) || len(x.Call.Args) == 0 {
				return false
			}
			v = x.Call.Args[0]
		case *ssa.Convert:
			v = x.X
		case *ssa.ChangeType:
			v = x.X
		case *ssa.UnOp:
			v = x.X
		case *ssa.Alloc:
			var with, without bool
			for _, w := range p.writes(x) {
				if w.kind == stored && len(w.path) == 0 {
					_, minted := p.trace(w.val, nil, false).any(fromSource)
					with, without = with || minted, without || !minted
				}
			}
			return with && without
		case *ssa.Phi:
			var with, without bool
			for _, e := range x.Edges {
				t := p.trace(e, nil, false)
				_, minted := t.any(fromSource)
				_, given := t.any(fromPath)
				with, without = with || minted, without || !minted && given
			}
			return with && without
		default:
			return false
		}
	}
	return false
}

// carried reports whether the body of the same message holds the minted value.
func (p *program) carried(u *use, o origin) bool {
	if u.m == nil {
		return false
	}
	return slices.ContainsFunc(p.origins(u.m, roleBody, true), func(b origin) bool { return b.kind == fromSource && b.root == o.root })
}

// attached reports whether an attribute of the same message holds the minted value.
func (p *program) attached(u *use, o origin) bool {
	return u.m != nil && slices.ContainsFunc(p.attributesOf(u.m).known, func(a attribute) bool {
		return slices.ContainsFunc(a.value.origins, func(b origin) bool { return b.kind == fromSource && b.root == o.root })
	})
}

// kept reports whether the minted value is also given to a function that may
// store it, which makes it the event's own ID from then on.
func (p *program) kept(u *use, o origin) bool {
	seen := map[ssa.Value]bool{}
	var walk func(v ssa.Value) bool
	walk = func(v ssa.Value) bool {
		if seen[v] || len(seen) > maxKept || shapeOf(v.Type()) != nil {
			return false
		}
		seen[v] = true
		for _, instr := range referrers(v) {
			switch instr := instr.(type) {
			case *ssa.Extract, *ssa.Convert, *ssa.ChangeType, *ssa.MakeInterface, *ssa.Phi, *ssa.UnOp, *ssa.Slice:
				if walk(instr.(ssa.Value)) {
					return true
				}
			case *ssa.Store:
				if instr.Val == v {
					if base := baseOf(instr.Addr); base != nil && walk(base) {
						return true
					}
				}
			case *ssa.MapUpdate:
				if walk(instr.Map) {
					return true
				}
			case *ssa.Call:
				callee := calleeOf(instr.Common())
				switch {
				case callee == nil || isReader(callee) || isSend(callee) || len(p.sinksOf(callee)) > 0:
				case isPure(callee):
					if walk(instr) {
						return true
					}
				default:
					return true
				}
			}
		}
		return false
	}
	return o.root != nil && walk(o.root)
}

// baseOf returns the variable that an address lies in.
func baseOf(addr ssa.Value) ssa.Value {
	for range maxUnwraps {
		switch x := addr.(type) {
		case *ssa.FieldAddr:
			addr = x.X
		case *ssa.IndexAddr:
			addr = x.X
		case *ssa.Alloc:
			return x
		default:
			return nil
		}
	}
	return nil
}
