package rules

import (
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// sent is one message of a sending call.
type sent struct {
	id, body, group, url *message.Use
	at                   ssa.CallInstruction
}

// oneIDTwoBodies checks rule SF016. It reports messages with the same deduplication ID and
// different bodies, because SQS drops the second message: two sends on one path, two
// entries of a batch, or the messages of a loop.
func (p *audit) oneIDTwoBodies() {
	byFunction := map[*ssa.Function][]sent{}
	for _, s := range p.sends() {
		byFunction[s.at.Parent()] = append(byFunction[s.at.Parent()], s)
	}
	for _, fn := range p.Fns {
		for _, first := range byFunction[fn] {
			p.oneIDInLoop(first)
			for _, second := range byFunction[fn] {
				if first.at == second.at && !sameBatch(first, second) || first.at != second.at && !follows(first.at, second.at) || !p.collide(first, second) {
					continue
				}
				f := second.finding(first.id.Pos, "the first message")
				f.text = second.id.Name() + " is also the ID of another body: SQS drops the second; give each event an ID"
				p.r.report(f)
			}
		}
	}
}

func (s sent) finding(related token.Pos, text string) finding {
	f := about(s.id, oneIDTwoBodies, "")
	f.source, f.name = flow.Origin{Pos: related, Text: text}, s.id.Field
	return f
}

// oneIDInLoop reports a message that a loop sends, or adds to a batch, if the body is
// another one in each round and the deduplication ID is not.
func (p *audit) oneIDInLoop(s sent) {
	in := s.at.Block()
	if made, ok := rootOf(s); ok && s.id.M.InBatch() {
		in = made.Block()
	} else if add := addsTo(s); add != nil {
		in = add.Block()
	} else if !flow.RepeatsAfterSuccess(s.at) {
		return
	}
	blocks := flow.Cycle(in)
	varies := func(u *message.Use) bool { return u != nil && flow.Varies(u.Slice, blocks, true) }
	if !flow.TakesNext(s.body.Slice, blocks) || varies(s.id) || varies(s.url) {
		return
	}
	if args := flow.Args(s.at.Common()); len(args) > 0 && flow.Varies(p.Trace(args[0], nil, false), blocks, true) {
		return // each round has another client
	}
	if _, given := s.id.Slice.Any(flow.FromPath); !given || !isKnown(s.id) {
		return
	}
	f := s.finding(s.body.Pos, "the body of each round")
	f.text = s.id.Name() + " is the same in each round of the loop, the body is not: SQS drops all but the first; give each event an ID"
	if varies(s.group) {
		f.severity = lint.Warning // the queue may compare the IDs of one group only
	}
	p.r.report(f)
}

// addsTo returns the call of append with which the function adds a message to a list, if
// the send gets this list, with the IDs and the bodies. Otherwise it returns nil.
func addsTo(s sent) *ssa.Call {
	for _, v := range s.body.Slice.InOrder {
		call, ok := v.(*ssa.Call)
		if !ok || s.id.M != nil || s.id.Value != s.body.Value || call.Parent() != s.at.Parent() || !types.Identical(call.Type(), s.body.Value.Type()) {
			continue
		}
		if b, ok := call.Call.Value.(*ssa.Builtin); ok && b.Name() == "append" {
			return call
		}
	}
	return nil
}

func rootOf(s sent) (ssa.Instruction, bool) {
	if s.id.M == nil {
		return nil, false
	}
	made, ok := s.id.M.Root.(ssa.Instruction)
	return made, ok
}

// sameBatch reports whether two messages are entries of one batch on one path, the first
// before the second.
func sameBatch(first, second sent) bool {
	a, ok := rootOf(first)
	b, also := rootOf(second)
	return ok && also && first.id.Pos < second.id.Pos && a.Parent() == b.Parent() && a.Block().Dominates(b.Block())
}

// sends returns the messages in the package that have a deduplication ID and a body, with
// the calls that send them. It leaves out messages to standard queues and messages of
// package sqsfifo.
func (p *audit) sends() []sent {
	type key struct {
		at ssa.CallInstruction
		m  *message.Message
	}
	var found []sent
	index := map[key]int{}
	urls := map[ssa.CallInstruction]*message.Use{}
	for _, u := range p.uses {
		if u.Evidence == message.NotFIFO || u.M != nil && u.M.Shape.Sdk || u.Role == message.RoleDedup && !u.Alone {
			continue
		}
		for _, at := range u.SendCalls() {
			if u.Role == message.RoleURL {
				urls[at] = u
				continue
			}
			i, ok := index[key{at, u.M}]
			if !ok {
				i = len(found)
				index[key{at, u.M}], found = i, append(found, sent{at: at})
			}
			switch s := &found[i]; u.Role {
			case message.RoleDedup:
				s.id = u
			case message.RoleBody:
				s.body = u
			case message.RoleGroup:
				s.group = u
			}
		}
	}
	for i := range found {
		found[i].url = urls[found[i].at]
	}
	return slices.DeleteFunc(found, func(s sent) bool { return s.id == nil || s.body == nil })
}

// collide reports whether two sends certainly have the same deduplication ID, the same
// queue and different bodies.
func (p *audit) collide(a, b sent) bool {
	if a.url == nil != (b.url == nil) || a.url != b.url && !sameOrigins(a.url, b.url) {
		return false
	}
	if _, constant := a.id.Slice.Constant(); constant {
		return false // SF003 reports constant deduplication IDs
	}
	return sameOrigins(a.id, b.id) && isKnown(a.body) && isKnown(b.body) && !sameOrigins(a.body, b.body)
}

// sameOrigins reports whether two values come from the same constants, parameters,
// variables and unknown calls.
func sameOrigins(a, b *message.Use) bool {
	x, y := a.Slice.Origins, b.Slice.Origins
	within := func(origins, others []flow.Origin) bool {
		return !slices.ContainsFunc(origins, func(o flow.Origin) bool { return !slices.ContainsFunc(others, o.Same) })
	}
	return len(x) > 0 && within(x, y) && within(y, x)
}

// isKnown reports whether a value comes only from constants, parameters, variables and
// unknown calls, and not, for example, from a clock.
func isKnown(u *message.Use) bool {
	return !slices.ContainsFunc(u.Slice.Origins, func(o flow.Origin) bool { return o.Kind != flow.FromConst && o.Kind != flow.FromPath })
}

// follows reports whether the second send can run after the success of the first send,
// in one run of their function.
func follows(first, second ssa.CallInstruction) bool {
	if !flow.ComesBefore(first, second) {
		return false
	}
	loop := flow.Cycle(first.Block())
	// If the second send follows only in the next iteration, it is for another event.
	if loop[second.Block()] && !first.Block().Dominates(second.Block()) {
		return false
	}
	// A send that runs only after an error of the first send is a retry for the same
	// event.
	return !afterError(second, first)
}
