package fifovet

import (
	"fmt"
	"go/token"
	"go/types"
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

// valueCause is the cause of what is wrong with the value at a position.
type valueCause struct{ pos token.Pos }

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

// constantID is SF003.
func (p *program) constantID(r *reporter, u *use) {
	text, ok := u.slice.constant()
	if !ok || !u.alone {
		return
	}
	r.report(finding{
		rule: constantDedupID, fn: u.fn, pos: u.pos, arg: u.arg, maybe: u.evidence == maybeFIFO, cause: valueCause{u.pos},
		text: fmt.Sprintf("%s is the constant %q: SQS takes one message in five minutes and drops every other event with an answer that says success; derive it from the event",
			u.name(), clip(text)),
	})
}

// maxID is the length of an ID, in characters (F-017, F-018).
const maxID = 128

// legalID is SF010 for constants.
func (p *program) legalID(r *reporter, u *use) {
	if u.m != nil && u.m.shape.sdk && u.role == roleDedup || len(u.slice.origins) != 1 {
		return // our key may be longer, it is in the body
	}
	o := u.slice.origins[0]
	if o.kind != fromConst || o.text == "" || o.mixed || !u.alone {
		return
	}
	var rule string
	if n := len([]rune(o.text)); n > maxID {
		rule = fmt.Sprintf("has %d characters, SQS takes 128", n)
	} else if i := strings.IndexFunc(o.text, func(c rune) bool { return c <= ' ' || c > '~' }); i >= 0 {
		rule = fmt.Sprintf("has a character at byte %d that is no ASCII letter, digit or punctuation mark", i)
	} else {
		return
	}
	r.report(finding{
		rule: invalidID, fn: u.fn, pos: u.pos, arg: u.arg, maybe: u.evidence == maybeFIFO, cause: valueCause{u.pos},
		text: fmt.Sprintf("%s %q %s: SQS refuses the message; use a short ASCII identifier or the hex SHA-256 of the longer one", u.name(), clip(o.text), rule),
	})
}

// bodyAsID is SF010 for a whole body that is used as it is.
func (p *program) bodyAsID(r *reporter, u *use) {
	if u.m == nil || u.m.shape.sdk {
		return
	}
	f := finding{rule: invalidID, fn: u.fn, pos: u.pos, arg: u.arg, maybe: u.evidence == maybeFIFO, cause: valueCause{u.pos}}
	encoder := p.encoder(u.value)
	for _, s := range u.m.all(roleBody) {
		switch {
		case encoder != nil && p.encoder(s.value) == encoder:
			f.text = u.name() + " is the whole body: SQS takes 128 characters and no spaces, and refuses the message; " +
				"leave it out on a queue with content-based deduplication, or use the hex SHA-256 of the body"
		case encoder == nil && p.sameText(u.slice, s.value):
			f.lower(lint.Warning)
			f.text = u.name() + " is the whole body: SQS takes 128 characters and no spaces, and refuses the message if it is longer; " +
				"leave it out on a queue with content-based deduplication, or use the hex SHA-256 of the body"
		default:
			continue
		}
		r.report(f)
		return
	}
}

// sameText reports whether an ID is the parameter, or the field, that is also the
// body, and that is called so.
func (p *program) sameText(id *tracer, body ssa.Value) bool {
	t := p.trace(body, nil, false)
	if len(id.origins) != 1 || len(t.origins) != 1 {
		return false
	}
	a, b := id.origins[0], t.origins[0]
	if a.kind != fromPath || b.kind != fromPath || a.mixed || b.mixed || a.root != b.root || !slices.Equal(a.path, b.path) {
		return false
	}
	name := a.root.Name()
	if len(a.path) > 0 {
		name = a.path[len(a.path)-1]
	}
	_, isBytes := typeAt(a.root.Type(), a.path).(*types.Slice)
	return isBytes || bodyName.MatchString(name)
}

// encoder returns the call whose result a value is, unchanged, if that call
// makes JSON or the like.
func (p *program) encoder(v ssa.Value) ssa.Value {
	for range maxUnwraps {
		switch x := v.(type) {
		case *ssa.Convert:
			v = x.X
		case *ssa.ChangeType:
			v = x.X
		case *ssa.UnOp:
			v = x.X
		case *ssa.Alloc:
			val := onlyStore(x)
			if val == nil {
				return nil
			}
			v = val
		case *ssa.Extract:
			v = x.Tuple
		case *ssa.Call:
			callee := calleeOf(x.Common())
			if callee == nil {
				return nil
			}
			if strings.HasPrefix(callee.Name(), "Marshal") {
				return x
			}
			if !isIdentity(callee) || len(x.Call.Args) == 0 {
				return nil
			}
			v = x.Call.Args[0]
		default:
			return nil
		}
	}
	return nil
}

// checkShared is SF014: one key for several types of events.
func (p *program) checkShared(r *reporter, uses []*use) {
	first := map[string]types.Type{}
	for _, u := range uses {
		if u.role != roleDedup || u.m == nil || u.evidence == notFIFO {
			continue
		}
		text, ok := u.slice.constant()
		if !ok {
			continue
		}
		t := p.eventType(u)
		if t == nil {
			continue
		}
		was, again := first[text]
		if !again {
			first[text] = t
			continue
		}
		if types.Identical(was, t) {
			continue
		}
		qual := func(pkg *types.Package) string {
			if pkg == p.pass.Pkg {
				return ""
			}
			return pkg.Name()
		}
		r.report(finding{
			rule: sharedConstantKey, fn: u.fn, pos: u.pos, arg: u.arg, cause: valueCause{u.pos},
			text: fmt.Sprintf("%s %q is also that of %s, here it is that of %s: events of different types become one; start the key with the type of the event",
				u.name(), clip(text), types.TypeString(was, qual), types.TypeString(t, qual)),
		})
	}
}

// eventType is the type of the event that a message is made of: the parameter
// of the function that identifies it, or what is encoded into the body.
func (p *program) eventType(u *use) types.Type {
	if u.m.shape.sdk {
		if params := u.fn.Signature.Params(); params.Len() > 0 {
			return params.At(0).Type()
		}
		return nil
	}
	for _, s := range u.m.sets[roleBody] {
		if call, ok := p.encoder(s.value).(*ssa.Call); ok && len(call.Call.Args) > 0 {
			if mk, ok := call.Call.Args[0].(*ssa.MakeInterface); ok {
				return mk.X.Type()
			}
		}
	}
	return nil
}

func clip(text string) string {
	if runes := []rune(text); len(runes) > 40 {
		return string(runes[:40]) + "…"
	}
	return text
}
