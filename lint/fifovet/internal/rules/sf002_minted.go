package rules

import (
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// nondetDedupID checks rule SF002. It reports an identity of an event that depends on a
// clock or a random source. The identity is a deduplication ID, or the field EventID or
// Time of a type such as sqsfifo.Identity.
func (p *audit) nondetDedupID() {
	for _, u := range p.fifoUses(message.RoleDedup, message.RoleEventID, message.RoleTime) {
		if o, minted := u.Slice.Any(flow.FromSource); minted {
			p.checkMinted(u, o)
		}
	}
}

// dedupIDs returns the deduplication IDs of messages to queues that are or may be FIFO,
// for rules such as SF003. It leaves out IDs from a clock or random source, because SF002
// already reports these IDs.
func (p *audit) dedupIDs() []*message.Use {
	return slices.DeleteFunc(p.fifoUses(message.RoleDedup), func(u *message.Use) bool {
		_, minted := u.Slice.Any(flow.FromSource)
		return minted
	})
}

// checkMinted reports SF002 for the value u in a message. At least a part of u comes from
// the clock or random source o.
func (p *audit) checkMinted(u *message.Use, o flow.Origin) {
	// A date (FromBucket) together with a part of the time of day, such as the hour
	// (o.Wraps), counts as a rounded time. SF002 does not report rounded times.
	if _, bucket := u.Slice.Any(flow.FromBucket); bucket && o.Wraps {
		return
	}
	f := about(u, nondetDedupID, "")
	f.source, f.name, f.cause = o, u.Field, p.causeOf(o)
	say := func(severity lint.Severity, format string) { f.say(severity, format, u.Name(), o.Text) }
	switch {
	case u.Role == message.RoleEventID:
		say(lint.Error, "%s comes from %s: a retry is another event; leave EventID out, sqsfifo derives it")
		f.fix = removeField
	case u.Role == message.RoleTime:
		say(lint.Error, "%s comes from %s: a retry is another event; use the time of the event")
	case o.Seeded && otherwiseConstant(u):
		say(lint.Error, "%s is %s, one value for a process: SQS drops events; derive it from the event")
	case o.Seeded:
		say(lint.Warning, "%s contains %s: another process has another ID for the event; leave it out")
	case o.Wraps:
		say(lint.Warning, "%s is a part of %s that repeats and identifies no event; derive it from the event")
	case p.isFallback(u):
		say(lint.Warning, "%s falls back to %s: a caller without an ID gets duplicates; refuse an empty ID")
	case p.isDeliberate(u):
		say(lint.Warning, "%s comes from %s: each run stores it again; reuse the received ID")
	case p.isInBody(u, o) && !p.set.strict && !o.Clock && p.mayBeStored(o):
		say(lint.Info, "%s comes from %s, as does the body: a retry by the caller is stored twice, unless other code stores the ID")
	case p.isInBody(u, o):
		say(lint.Warning, "%s and the body hold %s: a retry by the caller is stored twice; take it from the event")
		if p.set.strict {
			f.severity = lint.Error
		}
	case !o.Clock && p.isInAttribute(u, o) && p.mayBeStored(o):
		say(lint.Info, "%s comes from %s, as does an attribute: a retry by the caller is stored twice, unless other code stores the ID")
	case p.isPassedOn(u):
		say(lint.Warning, "%s comes from %s: a retry by the caller is stored twice; let the caller set it")
	default:
		say(lint.Error, "%s comes from %s: a retry is stored twice; derive it from the event")
	}
	p.r.report(f)
}

// otherwiseConstant reports whether a value consists only of constants, clock readings
// and random values.
func otherwiseConstant(u *message.Use) bool {
	_, other := u.Slice.Any(flow.FromPath, flow.FromUnknown, flow.FromBucket)
	return !other
}

// isFallback reports whether the code makes an ID only if there is none:
//
//	if id == "" { id = uuid.NewString() }
//
// The whole value then comes from one of two places.
func (p *audit) isFallback(u *message.Use) bool {
	origins := u.Slice.Origins
	if u.M != nil {
		origins = p.Origins(u.M, u.Role, false)
	}
	whole := func(kind flow.OriginKind) bool {
		return slices.ContainsFunc(origins, func(o flow.Origin) bool { return o.Kind == kind && !o.Mixed && len(o.Under) == 0 })
	}
	return whole(flow.FromSource) && whole(flow.FromPath)
}

// isDeliberate reports whether the body of the message is a received message, or comes from
// a form, or the code is for dead letters by its name. The fresh ID may then be meant: a tool
// that sends dead messages again, or a button of an administrator.
func (p *audit) isDeliberate(u *message.Use) bool {
	return flow.DeadLetterName.MatchString(flow.Outermost(u.Fn).String()) || slices.ContainsFunc(p.uses, func(body *message.Use) bool {
		return body.Role == message.RoleBody && body.Key() == u.Key() && slices.ContainsFunc(body.Slice.InOrder, isReceived)
	})
}

// isPassedOn reports whether an exported function only passes a message on: its caller gives
// the queue, the body and the group. The caller may be a tool that sends any message to any
// queue, and the fresh ID may be meant.
func (p *audit) isPassedOn(u *message.Use) bool {
	given := func(r message.Role) bool {
		found := false
		for _, o := range p.Origins(u.M, r, false) {
			param, ok := o.Root.(*ssa.Parameter)
			if unset := r == message.RoleGroup && o.Kind == flow.FromConst; !unset && (!ok || o.Mixed || !token.IsExported(param.Parent().Name()) || param.Object() == param.Parent().Signature.Recv()) {
				return false
			}
			found = found || ok
		}
		return found
	}
	return u.M != nil && given(message.RoleURL) && given(message.RoleBody) && given(message.RoleGroup)
}

// isReceived reports whether a value is a part of a message that SQS delivered, or a
// member of a form.
func isReceived(v ssa.Value) bool {
	switch v := v.(type) {
	case *ssa.FieldAddr:
		return message.IsReceived(v.X.Type())
	case *ssa.Field:
		return message.IsReceived(v.X.Type())
	case *ssa.Call:
		callee := flow.CalleeOf(v.Common())
		return callee != nil && strings.HasPrefix(flow.Qualified(callee), "net/http.Request.") && strings.HasSuffix(callee.Name(), "FormValue")
	}
	return false
}

// isInBody reports whether the clock reading or random value o is also in the body of the
// message.
func (p *audit) isInBody(u *message.Use, o flow.Origin) bool {
	return u.M != nil && slices.ContainsFunc(p.Origins(u.M, message.RoleBody, true), o.SameSource)
}

// isInAttribute is like isInBody for the attributes of the message.
func (p *audit) isInAttribute(u *message.Use, o flow.Origin) bool {
	return u.M != nil && slices.ContainsFunc(p.AttributesOf(u.M).Known, func(a message.Attribute) bool { return slices.ContainsFunc(a.Value.Origins, o.SameSource) })
}

// mayBeStored reports whether the analyzed code passes an ID to a function that may store
// the ID, for example in a database. A retry may then send the stored ID again. The
// parameter o is the clock or random source of the ID.
func (p *audit) mayBeStored(o flow.Origin) bool {
	seen := map[ssa.Value]bool{}
	var walk func(v ssa.Value) bool
	walk = func(v ssa.Value) bool {
		if seen[v] || len(seen) > maxKept || message.ShapeOf(v.Type()) != nil {
			return false
		}
		seen[v] = true
		return slices.ContainsFunc(flow.Referrers(v), func(instr ssa.Instruction) bool {
			switch instr := instr.(type) {
			case *ssa.Extract, *ssa.Convert, *ssa.ChangeType, *ssa.MakeInterface, *ssa.Phi, *ssa.UnOp, *ssa.Slice:
				return walk(instr.(ssa.Value))
			case *ssa.Store:
				base, ok := flow.BaseOf(instr.Addr).(*ssa.Alloc)
				return ok && instr.Val == v && walk(base)
			case *ssa.MapUpdate:
				return walk(instr.Map)
			case *ssa.Call:
				callee := flow.CalleeOf(instr.Common())
				if callee == nil || flow.IsReader(callee) || message.IsSend(callee) || len(p.SinksOf(callee)) > 0 {
					return false
				}
				return !flow.IsPure(callee) || walk(instr)
			}
			return false
		})
	}
	return o.Root != nil && walk(o.Root)
}
