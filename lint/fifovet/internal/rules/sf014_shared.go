package rules

import (
	"fmt"
	"go/types"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// sharedConstantKey checks rule SF014. It reports a constant dedupe key if an earlier
// message in the package has the same key and contains an event of another type.
func (p *audit) sharedConstantKey() {
	first := map[string]types.Type{}
	for _, u := range p.fifoUses(message.RoleDedup) {
		text, ok := u.Slice.Constant()
		t := p.eventType(u)
		if !ok || t == nil {
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
			if pkg == p.Pass.Pkg {
				return ""
			}
			return pkg.Name()
		}
		p.r.report(about(u, sharedConstantKey, fmt.Sprintf("%s %q is the ID of %s and of %s: events of two types become one; start the ID with the type",
			u.Name(), clip(text), types.TypeString(was, qual), types.TypeString(t, qual))))
	}
}

// eventType returns the type of a message's event, or nil if the type is unknown.
func (p *audit) eventType(u *message.Use) types.Type {
	if u.M == nil {
		return nil
	}
	if u.M.Shape.Sdk {
		// u.Fn sets the dedupe key from the event, its first parameter.
		if params := u.Fn.Signature.Params(); params.Len() > 0 {
			return params.At(0).Type()
		}
		return nil
	}
	for _, s := range u.M.Sets[message.RoleBody] {
		if call, ok := p.encoder(s.Value).(*ssa.Call); ok && len(call.Call.Args) > 0 {
			if mk, ok := call.Call.Args[0].(*ssa.MakeInterface); ok {
				return mk.X.Type()
			}
		}
	}
	return nil
}
