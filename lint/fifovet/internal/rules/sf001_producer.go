package rules

import (
	"fmt"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attrname"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// checkConfigs checks rule SF001 for producers of package sqsfifo. The result of
// Config.Attributes must depend only on data in the event's JSON form, because the body
// contains only this form of the event.
func (p *audit) checkConfigs() {
	for _, fn := range p.Fns {
		for instr := range flow.Instructions(fn) {
			addr, ok := instr.(*ssa.FieldAddr)
			if !ok || !isConfig(addr) || flow.FieldName(addr.X.Type(), addr.Field) != "Attributes" {
				continue
			}
			for _, val := range flow.Stores(addr) {
				if attributes := flow.FunctionOf(val); attributes != nil {
					p.checkConfig(attributes)
				}
			}
		}
	}
}

func isConfig(addr *ssa.FieldAddr) bool {
	return flow.TypeName(addr.X.Type()) == "Config" && flow.PackagePath(addr.X.Type()) == flow.SDKPath
}

func (p *audit) checkConfig(fn *ssa.Function) {
	if len(fn.Params) == 0 || fn.Signature.Results().Len() != 1 {
		return
	}
	event := fn.Params[len(fn.Params)-1]
	for _, v := range flow.Results(fn, 0) {
		var found message.AttributeSet
		p.CollectAttributes(&found, nil, v, nil, nil, 0)
		for _, a := range found.Known {
			if o, lost := outsideBody(a, event); lost {
				f := finding{rule: attrOnlyIdentity, fn: a.Fn, pos: a.Pos, arg: a.Arg, source: flow.Origin{Pos: o.Pos, Text: o.Text}, name: fmt.Sprintf("%q", a.Name)}
				if !attrname.Event(a.Name) {
					f.severity = lint.Warning
				}
				f.text = fmt.Sprintf("attribute %q is not in the event's JSON, so it distinguishes no events; move it into the payload or DedupeKey", a.Name)
				p.r.report(f)
			}
		}
	}
}

// outsideBody reports whether an attribute may differ between events with equal bodies,
// because its value is not in the event's JSON form. It also returns the value's origin.
func outsideBody(a message.Attribute, event *ssa.Parameter) (flow.Origin, bool) {
	if lint.NeverIdentifies(a.Name) || attrname.Attempt(a.Name) {
		return flow.Origin{}, false
	}
	var lost flow.Origin
	var found bool
	for _, o := range a.Value.Origins {
		switch {
		case o.Kind == flow.FromConst || o.Kind == flow.FromBucket:
		case o.Kind == flow.FromPath && o.Root == event && !flow.JSONVisible(event.Type(), o.Path):
			lost, found = o, true
		case o.Kind == flow.FromSource && attrname.Event(a.Name):
			lost, found = o, true
		default:
			// Do not report the attribute. If this part of its value is in the body, the body
			// probably distinguishes the events. If this part does not come from the event,
			// it may be a setting, the same for all events.
			return flow.Origin{}, false
		}
	}
	return lost, found
}
