package sqsfifo

import (
	"context"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// begin prepares an event for its submission to the dispatcher. If the argument `refusal`
// is not nil, begin refuses the event. If the argument `wait` is false, begin does not block.
func (c *sender) begin(ctx context.Context, it *item, refusal error, wait bool) {
	if wait {
		c.keys.learnName(ctx)
	}
	payload, ok := c.open(ctx, it, refusal)
	if ok && wait && c.memory.HasStore() {
		c.lookUp(ctx, it)
		payload, ok = payloadOf(it.Message.msg.Body), it.Verdict != verdict.KindRefuse
	}
	if ok {
		c.enter(it, payload)
	}
}

// open starts the event's span and checks the event's message. The argument `refusal` is
// the error of building the message, or nil. Such an error is the reason for which open
// refuses the event. The result `ok` is false for a refused event.
func (c *sender) open(ctx context.Context, it *item, refusal error) (payload string, ok bool) {
	s := &it.Message
	s.refuse(refusal)
	s.known.SendAnyway = s.rules.enforcement != EnforcementRefuse
	if c.sqs.NeverAnswered() || c.memory.HasStore() && c.store.NeverAnswered() {
		s.started = time.Now()
	}
	// The lookup in the store may take long, so note the time before it.
	if c.memory.HasStore() {
		s.submitted = c.memory.Recently()
	}
	s.ctx, s.span = c.observer.StartEvent(ctx)
	if s.msg == nil {
		it.Verdict = verdict.KindRefuse
		return "", false
	}
	s.replay = s.msg.isReplay()
	it.Group, it.Key, it.ID = s.msg.Group, s.msg.key(), s.msg.EventID
	it.Size = s.msg.size()
	payload = payloadOf(s.msg.Body)
	if s.refusal() == nil {
		s.refuse(c.check(s, payload))
	}
	if s.refusal() == nil && c.memory.HasStore() {
		s.refuse(c.keys.prepare(c.memory, s))
	}
	if s.refusal() != nil {
		it.Verdict = verdict.KindRefuse
	}
	return payload, it.Verdict != verdict.KindRefuse
}

// enter looks up the event in the producer's memory of sent events, and adds the attributes
// that describe the event to the event's span.
func (c *sender) enter(it *item, payload string) {
	s := &it.Message
	c.observer.Describe(s.span, s.describe)
	it.Size += c.attributes(s)
	c.identify(it, payload)
	s.replay = s.replay || s.known.WasSentHere()
	if it.Verdict == verdict.KindKnown {
		c.recheckAttributes(it)
	}
}

// recheckAttributes refuses an event that Config.Store reports as stored, if this process
// sent the event with different attributes. The store keeps no attributes, so it cannot
// find the difference.
func (c *sender) recheckAttributes(it *item) {
	s := &it.Message
	v, other := c.memory.AttributesCollide(&s.known)
	if !other {
		return
	}
	if s.refuse(c.collides(s, &v)); s.refusal() != nil {
		it.Verdict = verdict.KindRefuse
	}
}

// lookUp asks the store whether it already has the events, and claims none of them. For
// each event, first call the method `open`. Call the method `enter` last, because lookUp may
// replace the event's message by the store's message.
func (c *sender) lookUp(ctx context.Context, items ...*item) {
	attempts := make([]memory.Attempt, len(items))
	for i, it := range items {
		attempts[i].Record = &it.Message.known
	}
	c.memory.LookUp(ctx, attempts)
	for i, it := range items {
		c.lookedUp(it, &attempts[i].Verdict)
	}
}

func (c *sender) lookedUp(it *item, v *verdict.Verdict) {
	s := &it.Message
	collision := c.reportDifferences(s, v)
	switch v.Kind {
	case verdict.KindKnown:
		it.Verdict = verdict.KindKnown
	case verdict.KindAdopt:
		c.adopt(it)
	case verdict.KindRefuse:
		s.refuse(collision)
		it.Verdict = verdict.KindRefuse
	default: // no decision yet: before the first attempt the producer claims the event in the store
	}
	s.seen = s.known.WasSentElsewhere()
}

// attributes sets s.ownAttributes to the message's attributes in the form of the SDK, and
// s.tracedAttributes to the same attributes and the trace context. It returns the size of
// the trace context in bytes.
func (c *sender) attributes(s *submission) (added int) {
	own := s.msg.Attributes
	carried, added := c.observer.Inject(s.ctx, own, c.inspector.maxSize()-s.msg.size())
	if len(own) > 0 {
		s.ownAttributes = make(map[string]types.MessageAttributeValue, len(own))
		for name, value := range own {
			s.ownAttributes[name] = stringAttribute(value)
		}
	}
	if s.tracedAttributes = s.ownAttributes; len(carried) == 0 {
		return 0
	}
	s.tracedAttributes = make(map[string]types.MessageAttributeValue, len(own)+len(carried))
	maps.Copy(s.tracedAttributes, s.ownAttributes)
	for name, value := range carried {
		s.tracedAttributes[name] = stringAttribute(value)
	}
	return added
}

var stringDataType = stringType

func stringAttribute(value string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: &stringDataType, StringValue: &value}
}
