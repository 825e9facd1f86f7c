package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// WindowPolicy selects what a run does with an item that SQS stored recently: if the item
// were sent now, SQS would or might suppress it as a duplicate. The empty WindowPolicy
// means WindowSkip.
type WindowPolicy string

const (
	// WindowSkip: do not send an item that SQS stored recently.
	WindowSkip WindowPolicy = "skip"

	// WindowSend: also send an item that SQS stored recently. SQS suppresses the copy, but
	// may deliver it near the end of the deduplication interval.
	WindowSend WindowPolicy = "send"

	// WindowWait: delay an item that SQS stored recently. The item is sent when SQS has
	// certainly forgotten the original, and so delivers the copy. Later items of the group
	// wait as well.
	WindowWait WindowPolicy = "wait"
)

var windowPolicies = []WindowPolicy{WindowSkip, WindowSend, WindowWait}

// Filter selects items. Zero fields select all.
type Filter struct {
	// From (inclusive) and Before (exclusive) limit the item's last send time. An item
	// without a send time is compared by its event_time.
	From   time.Time `json:"from,omitzero"`
	Before time.Time `json:"before,omitzero"`

	EventSources []string `json:"event_sources,omitempty"`
	DedupeKeys   []string `json:"dedupe_keys,omitempty"`
	Groups       []string `json:"groups,omitempty"`
	Statuses     []Status `json:"statuses,omitempty"`
}

func selects[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

// Options select the items to send. The zero value sends items not recorded as delivered or
// discarded. The fields Window and ResendInDoubt describe exceptions.
type Options struct {
	Filter Filter `json:"filter,omitzero"`

	// Window is the policy for items stored so recently that SQS suppresses a copy, or
	// may suppress it.
	Window WindowPolicy `json:"window"`

	// Redeliver also sends items recorded as delivered.
	Redeliver bool `json:"redeliver,omitempty"`

	// ResendInDoubt also sends items in doubt (possibly stored) when SQS may no longer
	// suppress a duplicate. Such an item may be delivered twice. The policy in field
	// Window applies to these items, too.
	//
	// Without ResendInDoubt, these items are unresolved and stop their groups.
	ResendInDoubt bool `json:"resend_in_doubt,omitempty"`
}

// Action is the treatment of an item in a plan.
type Action string

const (
	// ActionSend sends the item.
	ActionSend Action = "send"

	// ActionWait delays the item until SQS has forgotten its earlier send, and then sends
	// the item.
	ActionWait Action = "wait"

	// ActionSkip does not send the item. Its group continues.
	ActionSkip Action = "skip"

	// ActionUnresolved does not send the item: it may have been stored, and SQS may have
	// forgotten it. An operator resolves the item.
	ActionUnresolved Action = "unresolved"

	// ActionConflict does not send the item, because another message of the source has the
	// same dedupe key.
	ActionConflict Action = "conflict"

	// ActionDrift is for an item whose message differs from the source's record, for
	// example in the hash of the body. The item stops its group, unless the run reads it
	// again and the message and the record now agree. The run then decides by the item's
	// status, as for other items.
	ActionDrift Action = "drift"
)

var actions = []Action{ActionSend, ActionWait, ActionSkip, ActionUnresolved, ActionConflict, ActionDrift}

// Reasons for not sending an item (PlannedItem.Reason).
const (
	reasonDelivered    = "delivered"     // recorded as delivered
	reasonDiscarded    = "discarded"     // an operator decided not to send the item
	reasonRepeated     = "repeated"      // the same message is earlier in the plan
	reasonWindow       = "window"        // SQS would or might suppress the item as a duplicate
	reasonGroupStopped = "group stopped" // an earlier item stopped the group
)

// PlannedItem is one line of a plan. It has no payload.
type PlannedItem struct {
	// Number counts the items of the plan from 0, in source order.
	Number   int    `json:"n"`
	Position string `json:"position"`

	Group       string    `json:"group"`
	DedupeKey   string    `json:"dedupe_key"`
	EventID     uuid.UUID `json:"event_id"`
	EventSource string    `json:"event_source"`

	// BodyHash is the SHA-256 of the body in hexadecimal. It comes from the source's record
	// or, without a recorded hash, from the body when the plan was made. A run sends the
	// item only if its body has this hash.
	BodyHash string `json:"body_hash"`
	Size     int    `json:"size"` // of the body in bytes

	Status    Status      `json:"status"`
	Time      time.Time   `json:"time,omitzero"` // latest send time, or else event time; for Filter
	Sent      SentBetween `json:"sent,omitzero"`
	MessageID string      `json:"message_id,omitempty"`

	// Label says how SQS would treat the item at the time Plan.Made.
	Label  Label  `json:"label"`
	Action Action `json:"action"`

	// Reason explains why the item is not sent.
	Reason string `json:"reason,omitempty"`
}

// Plan lists the actions of a run. It comes from [NewPlan] or [ReadPlan] and is
// immutable.
type Plan struct {
	// ID is the SHA-256 of the plan's written form in hexadecimal.
	ID string

	Source  string // name of the source
	Made    time.Time
	Options Options

	// Excluded is the number of items excluded by the filter.
	Excluded int

	Items []PlannedItem
}

// NewPlan reads the source and decides about each item. It makes no request. The same
// items, options and time always give the same plan.
//
// A source may have several items of one message, for example first "not stored" and later
// "delivered". NewPlan joins their statuses and times (here: delivered) in the first item
// and skips the later items. The filter applies to the joined values.
//
// An item takes a few hundred bytes of memory, because bodies are not kept.
func NewPlan(ctx context.Context, source Source, o Options, now time.Time) (*Plan, error) {
	if err := o.check(source); err != nil {
		return nil, err
	}
	p := &Plan{Source: source.Name(), Made: now.UTC().Round(0), Options: o}
	var all []PlannedItem
	for it, err := range source.Scan(ctx) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("replay: plan: %w", err)
		}
		if !utf8.ValidString(it.Position) || len(it.Position) > maxPosition {
			return nil, fmt.Errorf("replay: plan: the source %q has the position %.100q; want UTF-8 of at most %d bytes", source.Name(), it.Position, maxPosition)
		}
		item := planItem(&it)
		if err := known("status", item.Status, statuses); err != nil {
			return nil, fmt.Errorf("replay: plan: the source %q, position %.100q: %w", source.Name(), it.Position, err)
		}
		f := &o.Filter
		if !selects(f.EventSources, item.EventSource) || !selects(f.DedupeKeys, item.DedupeKey) || !selects(f.Groups, item.Group) {
			p.Excluded++
			continue
		}
		all = append(all, item)
	}
	variants := joinRecords(all)
	for i := range all {
		item := &all[i]
		if f := &o.Filter; !selects(f.Statuses, item.Status) || !f.From.IsZero() && item.Time.Before(f.From) || !f.Before.IsZero() && !item.Time.Before(f.Before) {
			p.Excluded++
			continue
		}
		if item.Status == StatusPending {
			item.Sent = SentBetween{}
		} else if item.Sent.To.IsZero() {
			item.Sent.To = p.Made
		}
		item.decide(o, p.Made)
		variants.skipOrConflict(i, item)
		item.Number = len(p.Items)
		p.Items = append(p.Items, *item)
	}
	var err error
	p.ID, err = p.hash()
	return p, err
}

func (o *Options) check(source Source) error {
	switch {
	case source == nil:
		return errors.New("replay: nil source; pass what NewJSONLines or another constructor returned")
	case source.Name() == "":
		return errors.New("replay: the source has no name; name what it reads, so that two runs over it exclude each other")
	}
	o.Window = cmp.Or(o.Window, WindowSkip)
	return o.checkWords()
}

func (o *Options) checkWords() error {
	if err := known("window", o.Window, windowPolicies); err != nil {
		return fmt.Errorf("replay: Options.Window: %w", err)
	}
	for i, s := range o.Filter.Statuses {
		if err := known("status", s, statuses); err != nil {
			return fmt.Errorf("replay: Options.Filter.Statuses[%d]: %w", i, err)
		}
	}
	return nil
}

// planItem converts a source item to a plan item. It sets ActionDrift if the message is
// missing or differs from its record (see drift), and otherwise no action. It sets no
// label.
func planItem(it *Item) PlannedItem {
	p := PlannedItem{
		Position: it.Position, Status: cmp.Or(it.Status, StatusUnknown), MessageID: shorten(it.MessageID),
		Sent: SentBetween{From: it.Sent.From.UTC().Round(0), To: it.Sent.To.UTC().Round(0)},
		// Each field has the value of the source's record or, if that value is empty, the
		// value of the message (set below). A run sends only a message with these values. It
		// does not compare an empty dedupe key.
		Group: it.Group, DedupeKey: it.DedupeKey, BodyHash: it.BodyHash,
	}
	if p.Reason = shorten(it.drift()); p.Reason != "" {
		p.Action = ActionDrift
	}
	if m := it.Message; m != nil {
		p.Group, p.BodyHash, p.Size = cmp.Or(p.Group, m.Group), cmp.Or(p.BodyHash, hashOf(m.Body)), len(m.Body)
		// The dedupe key and the event ID of a drifted message may be wrong. Do not use them.
		if p.Action != ActionDrift {
			p.DedupeKey, p.EventID = cmp.Or(p.DedupeKey, m.DedupeKey), m.EventID
		}
		if e, err := parseEnvelope(m.Body); err == nil {
			p.EventSource, p.Time = shorten(e.EventSource), e.EventTime.UTC()
		}
	}
	if !p.Sent.To.IsZero() {
		p.Time = p.Sent.To
	}
	p.Group, p.DedupeKey, p.BodyHash = shorten(p.Group), shorten(p.DedupeKey), shorten(p.BodyHash)
	return p
}

// Limits for texts in a plan line, in bytes. Texts that the producer accepts are shorter.
const (
	maxPosition = 4096
	maxText     = 2048
)

// shorten returns s, or a shortened form if s has more than maxText bytes or is not
// UTF-8. All IDs, groups and keys accepted by SQS are shorter than maxText.
func shorten(s string) string {
	if utf8.ValidString(s) && len(s) <= maxText {
		return s
	}
	return fmt.Sprintf("%.200q, %d bytes", s, len(s))
}

func (p *PlannedItem) decide(o Options, now time.Time) {
	p.Label = p.Sent.label(now)
	a, reason := p.actionFor(o, p.Label)
	// An item skipped as delivered or discarded is not sent, so its drift does not matter.
	if p.Action != ActionDrift || reason == reasonDelivered || reason == reasonDiscarded {
		p.Action, p.Reason = a, reason
	}
}

func (p *PlannedItem) actionFor(o Options, l Label) (Action, string) {
	switch {
	case p.Status == StatusDiscarded:
		return ActionSkip, reasonDiscarded
	case p.Status == StatusDelivered && !o.Redeliver:
		return ActionSkip, reasonDelivered
	case p.Status == StatusInDoubt && l == LabelInside: // safe: SQS suppresses the resend if it stored the item
		return ActionSend, ""
	case p.Status == StatusInDoubt && !o.ResendInDoubt:
		return ActionUnresolved, "it may have been stored, and SQS may have forgotten it"
	case l == LabelNew || l == LabelOutside || o.Window == WindowSend:
		return ActionSend, ""
	case o.Window == WindowWait:
		return ActionWait, ""
	default:
		return ActionSkip, reasonWindow
	}
}
