package sqsfifo

import (
	"context"
	"maps"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/claims"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/dedup"
)

// begin is open and enter for one event. It is looked up in between if there is a store
// and the caller may wait for it.
func (c *courier) begin(ctx context.Context, it *item, refusal error, wait bool) {
	payload, ok := c.open(ctx, it, refusal)
	if ok && wait && c.store != nil {
		c.lookUp(ctx, it)
		payload, ok = payloadOf(it.Message.msg.Body), !it.Refused
	}
	if ok {
		c.enter(it, payload)
	}
}

// open starts the span of an event and checks its message, if it could be built.
// The error of an event that will not be sent is in s.refusal.
func (c *courier) open(ctx context.Context, it *item, refusal error) (payload string, ok bool) {
	s := &it.Message
	s.refuse(refusal)
	s.ctx, s.span = c.observer.StartEvent(ctx)
	if s.msg == nil {
		it.Refused = true
		return "", false
	}
	s.replay = s.msg.isReplay()
	it.Group, it.Key, it.ID = s.msg.Group, s.msg.key(), s.msg.EventID
	it.Size = s.msg.size()
	payload = payloadOf(s.msg.Body)
	if s.refusal() == nil {
		s.refuse(c.check(s, payload))
	}
	if s.refusal() == nil && c.store != nil {
		s.refuse(c.claim(s))
	}
	it.Refused = s.refusal() != nil
	return payload, !it.Refused
}

// enter makes the event known to the memory.
func (c *courier) enter(it *item, payload string) {
	s := &it.Message
	c.identify(it, payload)
	s.replay = s.replay || s.ticket.Known.State > dedup.Clear
	c.observer.Describe(s.span, s.describe)
	it.Size += c.attributes(s)
	if it.Known {
		c.recheck(it)
	}
}

// recheck asks the memory about an event that the store has, and that will not come to
// Admit: the store does not know the attributes.
func (c *courier) recheck(it *item) {
	s := &it.Message
	if v := c.memory.Judge(c.memory.Recently(), &s.id, &s.ticket); v.Kind == dedup.OtherAttributes {
		s.refuse(c.collides(s, v))
		it.Refused = s.refusal() != nil
	}
}

func (c *courier) claim(s *submission) error {
	k, err := c.store.claim(s.msg, s.rare == nil || len(s.rare.findings) == 0)
	if err != nil {
		return s.notStored(err)
	}
	s.claimed = &claimed{claim: k}
	return nil
}

// lookUp asks the store about events that are open and not entered yet.
func (c *courier) lookUp(ctx context.Context, items ...*item) {
	var asked []*item
	var questions []*claims.Claim
	for _, it := range items {
		if k := it.Message.claimed; k != nil {
			asked, questions = append(asked, it), append(questions, k.claim)
		}
	}
	if len(asked) == 0 || ctx.Err() != nil {
		return
	}
	verdicts := make([]claims.Verdict, len(asked))
	c.store.LookUp(ctx, questions, verdicts)
	for i, it := range asked {
		c.lookedUp(it, verdicts[i])
	}
}

func (c *courier) lookedUp(it *item, v claims.Verdict) {
	s := &it.Message
	if v.Drift {
		c.drifted(s)
	}
	switch v.Kind {
	case claims.Duplicate:
		it.Known = true
	case claims.Other:
		c.adopt(it)
	case claims.Conflict:
		s.refuse(c.conflicts(s, v.Err))
		it.Refused = s.refusal() != nil
	default: // the claim decides
	}
	s.seen = s.claimed.claim.Known().State >= claims.InDoubt
}

// attributes makes the SQS form of the message's attributes, with and without
// trace context, and returns how many bytes that adds.
func (c *courier) attributes(s *submission) (added int) {
	own := s.msg.Attributes
	carried, added := c.observer.Inject(s.ctx, own, c.inspector.maxSize()-s.msg.size())
	if len(own) > 0 {
		s.plain = make(map[string]types.MessageAttributeValue, len(own))
		for name, value := range own {
			s.plain[name] = stringAttribute(value)
		}
	}
	if s.traced = s.plain; len(carried) == 0 {
		return 0
	}
	s.traced = make(map[string]types.MessageAttributeValue, len(own)+len(carried))
	maps.Copy(s.traced, s.plain)
	for name, value := range carried {
		s.traced[name] = stringAttribute(value)
	}
	return added
}

var stringDataType = stringType

func stringAttribute(value string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: &stringDataType, StringValue: &value}
}
