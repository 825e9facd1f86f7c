package rules

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attrname"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// distinguishes reports whether an attribute may distinguish two events. A time, a host
// or a setting cannot.
func distinguishes(a message.Attribute) bool {
	variable, known := a.Variable()
	if lint.NeverIdentifies(a.Name) || !known || len(variable) == 0 {
		return false
	}
	if !attrname.Event(a.Name) && slices.ContainsFunc(variable, func(o flow.Origin) bool { return o.Kind == flow.FromSource }) {
		return false
	}
	return slices.ContainsFunc(variable, func(o flow.Origin) bool { return !isSetting(o) })
}

// attrOnlyIdentity checks rule SF001. It reports an attribute that distinguishes events,
// such as an event ID, and is missing in the body. Without a deduplication ID, SQS
// compares only bodies.
func (p *audit) attrOnlyIdentity() {
	for _, l := range p.letters {
		if l.Evidence != message.NotFIFO {
			for _, a := range l.Attributes.Known {
				p.checkAttribute(l, a)
			}
		}
	}
	p.checkConfigs()
}

func (p *audit) checkAttribute(l *message.Letter, a message.Attribute) {
	identity := attrname.Event(a.Name)
	if !distinguishes(a) || l.Carriage(a) != message.NotCarried || l.Member(p.Index, a) != nil {
		return
	}
	f := finding{
		rule: attrOnlyIdentity, fn: a.Fn, pos: a.Pos, arg: a.Arg, maybe: l.Evidence == message.MaybeFIFO, name: fmt.Sprintf("%q", a.Name), cause: identityCause{l.Key},
	}
	own := l.OwnID()
	switch {
	case !l.ContentBased && !identity:
		return
	case !l.ContentBased:
		f.maybe = false
		f.say(lint.Info, "attribute %q is not in the body: a consumer cannot check it against the body", a.Name)
	case isContext(a.Name) || own != message.NoID && !identity || own == message.EventID || own != message.NoID && strings.HasSuffix(strings.ToLower(a.Name), "name"):
		f.say(lint.Info, "attribute %q is not in the body, so messages that differ only in it become one", a.Name)
	case identity:
		f.say(lint.Error, "attribute %q identifies the event and is not in the body; put it into the body", a.Name)
	default:
		f.say(lint.Warning, "attribute %q is not in the body: SQS drops messages that differ only in it; put it into the body", a.Name)
	}
	p.r.report(f)
}

// isContext reports whether the name of an attribute describes a request, an attempt, a
// host or an address, and not an event.
func isContext(name string) bool {
	return attrname.Attempt(name) || placeName.MatchString(name)
}

// isSetting reports whether a value with the origin o is probably the same in all
// messages. This is true for package-level variables, environment variables, flags,
// fields of a settings type, and fields of the method's receiver.
func isSetting(o flow.Origin) bool {
	if o.Kind != flow.FromPath {
		return false
	}
	switch root := o.Root.(type) {
	case *ssa.Global:
		return true
	case *ssa.Call:
		callee := flow.CalleeOf(root.Common())
		return callee != nil && callee.Pkg() != nil && (callee.Pkg().Path() == "os" || callee.Pkg().Path() == "flag" || flow.SettingsName.MatchString(flow.TypeName(root.Type())))
	case *ssa.Parameter:
		fn := root.Parent()
		if len(o.Path) > 0 && flow.SettingsName.MatchString(flow.TypeName(root.Type())) {
			return true
		}
		return fn.Signature.Recv() != nil && fn.Params[0] == root && len(o.Path) > 0
	}
	return false
}
