package fifovet

import (
	"fmt"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attrname"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// checkConfigs is SF001 for our own producers: what Config.Attributes returns
// has to be a function of what is in the body, which is the event as
// encoding/json writes it.
func (p *program) checkConfigs(r *reporter) {
	for _, fn := range p.fns {
		for _, block := range fn.Blocks {
			for _, instr := range block.Instrs {
				addr, ok := instr.(*ssa.FieldAddr)
				if !ok || !isConfig(addr) || fieldName(addr.X.Type(), addr.Field) != "Attributes" {
					continue
				}
				for _, use := range referrers(addr) {
					if store, ok := use.(*ssa.Store); ok && store.Addr == addr {
						if attributes := functionOf(store.Val); attributes != nil {
							p.checkConfig(r, attributes)
						}
					}
				}
			}
		}
	}
}

func isConfig(addr *ssa.FieldAddr) bool {
	return typeName(addr.X.Type()) == "Config" && packagePath(addr.X.Type()) == sdkPath
}

func functionOf(v ssa.Value) *ssa.Function {
	switch v := v.(type) {
	case *ssa.Function:
		return v
	case *ssa.MakeClosure:
		fn, _ := v.Fn.(*ssa.Function)
		return fn
	case *ssa.ChangeType:
		return functionOf(v.X)
	}
	return nil
}

func (p *program) checkConfig(r *reporter, fn *ssa.Function) {
	if len(fn.Blocks) == 0 || len(fn.Params) == 0 {
		return
	}
	event := fn.Params[len(fn.Params)-1]
	for _, block := range fn.Blocks {
		ret, ok := last(block).(*ssa.Return)
		if !ok || len(ret.Results) != 1 {
			continue
		}
		var found attributeSet
		p.collectAttributes(&found, nil, ret.Results[0], nil, nil, 0)
		for _, a := range found.known {
			if o, lost := outsideBody(a, event); lost {
				f := finding{rule: attrOnlyIdentity, fn: a.fn, pos: a.pos, arg: a.arg, source: origin{pos: o.pos, text: o.text}, what: fmt.Sprintf("%q", a.name)}
				identity := attrname.Event(a.name)
				if !identity {
					f.lower(lint.Warning)
				}
				f.text = fmt.Sprintf("attribute %q holds what is not in the event's JSON: SQS hashes the body alone, so it cannot tell two events apart; "+
					"move it into the payload or into DedupeKey", a.name)
				r.report(f)
			}
		}
	}
}

// outsideBody reports whether an attribute is made of something that the event
// does not carry: a field that encoding/json leaves out, or something minted.
// Other values, such as the region of a deployment, are taken for routing.
func outsideBody(a attribute, event *ssa.Parameter) (origin, bool) {
	if lint.Benign(a.name) || attrname.Attempt(a.name) {
		return origin{}, false
	}
	var lost origin
	var found bool
	for _, o := range a.value.origins {
		switch {
		case o.kind == fromConst || o.kind == fromBucket:
		case o.kind == fromPath && o.root == event && !jsonVisible(event.Type(), o.path):
			lost, found = o, true
		case o.kind == fromSource && attrname.Event(a.name):
			lost, found = o, true
		default:
			return origin{}, false
		}
	}
	return lost, found
}
