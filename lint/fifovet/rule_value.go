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

// valueCause is the cause of what is wrong with the value at a position.
type valueCause struct{ pos token.Pos }

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
		rule = fmt.Sprintf("has a character at byte %d that is not an ASCII letter, digit or punctuation mark", i)
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
