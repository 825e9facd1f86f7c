package rules

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// sent is one sending call with the deduplication ID, the body and the queue of its
// message.
type sent struct {
	id, body, url *message.Use
	at            ssa.CallInstruction
}

// oneIDTwoBodies checks rule SF016. It reports two sends on one path with the same
// deduplication ID and different bodies, because SQS drops the second message.
func (p *audit) oneIDTwoBodies() {
	byFunction := map[*ssa.Function][]sent{}
	for _, s := range p.sends() {
		byFunction[s.at.Parent()] = append(byFunction[s.at.Parent()], s)
	}
	for _, fn := range p.Fns {
		for _, first := range byFunction[fn] {
			for _, second := range byFunction[fn] {
				if first.at == second.at || !follows(first.at, second.at) || !p.collide(first, second) {
					continue
				}
				p.r.report(finding{
					rule: oneIDTwoBodies, fn: second.id.Fn, pos: second.id.Pos, arg: second.id.Arg, maybe: second.id.Evidence == message.MaybeFIFO,
					source: flow.Origin{Pos: first.id.Pos, Text: "the first message"}, name: second.id.Field, cause: valueCause{second.id.Pos},
					text: second.id.Name() + " is also the ID of another body: SQS drops the second; give each event an ID",
				})
			}
		}
	}
}

// sends returns the calls in the package that send a message with a deduplication ID and a
// body. It leaves out messages to standard queues and messages of package sqsfifo.
func (p *audit) sends() []sent {
	var found []sent
	index := map[any]int{}
	for _, u := range p.uses {
		if u.Evidence == message.NotFIFO && u.Role != message.RoleURL || u.M != nil && u.M.Shape.Sdk {
			continue
		}
		for _, at := range u.SendCalls() {
			i, ok := index[at]
			if !ok {
				i = len(found)
				index[at], found = i, append(found, sent{at: at})
			}
			s := &found[i]
			switch u.Role {
			case message.RoleDedup:
				s.id = u
			case message.RoleBody:
				s.body = u
			case message.RoleURL:
				s.url = u
			}
		}
	}
	return slices.DeleteFunc(found, func(s sent) bool { return s.id == nil || s.body == nil })
}

// collide reports whether two sends certainly have the same deduplication ID, the same
// queue and different bodies.
func (p *audit) collide(a, b sent) bool {
	if a.url == nil != (b.url == nil) {
		return false
	}
	if a.url != nil {
		if same, known := sameOrigins(a.url, b.url); !same || !known {
			return false
		}
	}
	if _, constant := a.id.Slice.Constant(); constant {
		return false // SF003 reports constant deduplication IDs
	}
	sameID, known := sameOrigins(a.id, b.id)
	sameBody, alsoKnown := sameOrigins(a.body, b.body)
	return known && sameID && alsoKnown && !sameBody
}

// originKey identifies an origin of a value.
type originKey struct {
	root ssa.Value
	path string
	text string
}

func keysOf(u *message.Use) (keys []originKey, known bool) {
	for _, o := range u.Slice.Origins {
		k := originKey{root: o.Root}
		switch o.Kind {
		case flow.FromConst:
			k = originKey{text: o.Text}
		case flow.FromPath:
			for _, elem := range o.Path {
				k.path += "." + elem
			}
		default:
			return nil, false
		}
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys, len(keys) > 0
}

// sameOrigins reports whether two values come from the same constants, parameters,
// variables and unknown calls. If a value has other origins, such as a clock, or no
// origins, the result `known` is false.
func sameOrigins(a, b *message.Use) (same, known bool) {
	x, known := keysOf(a)
	y, alsoKnown := keysOf(b)
	same = len(x) == len(y) && !slices.ContainsFunc(x, func(k originKey) bool { return !slices.Contains(y, k) })
	return same, known && alsoKnown
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
