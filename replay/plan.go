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

// WindowPolicy says what becomes of items that were stored so lately that SQS
// suppresses them, or may.
type WindowPolicy uint8

const (
	// WindowSkip does not send them.
	WindowSkip WindowPolicy = iota

	// WindowSend sends them: SQS suppresses those that are inside the window, and may
	// deliver those at its edge again.
	WindowSend

	// WindowWait sends them when SQS has surely forgotten them, so that they are
	// delivered again. The later items of their groups wait, too.
	WindowWait
)

var windowNames = names{"skip", "send", "wait"}

// String returns "skip", "send" or "wait".
func (p WindowPolicy) String() string { return windowNames.of(uint8(p), "WindowPolicy") }

// MarshalText returns String.
func (p WindowPolicy) MarshalText() ([]byte, error) {
	return windowNames.marshal(uint8(p), "WindowPolicy")
}

// UnmarshalText is the inverse of MarshalText.
func (p *WindowPolicy) UnmarshalText(text []byte) error {
	return windowNames.unmarshal(text, (*uint8)(p), "WindowPolicy")
}

// Filter selects items. Zero fields select all.
type Filter struct {
	// From and Before bound when an item was sent last, as far as its source records
	// that, and otherwise its event_time.
	From   time.Time `json:"from,omitzero"`
	Before time.Time `json:"before,omitzero"`

	EventSources []string `json:"event_sources,omitempty"`
	DedupeKeys   []string `json:"dedupe_keys,omitempty"`
	Groups       []string `json:"groups,omitempty"`
	Statuses     []Status `json:"statuses,omitempty"`
}

func selects[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

// Options say which items are sent. The zero value sends those that were not
// delivered, as far as the source records that.
type Options struct {
	Filter Filter `json:"filter,omitzero"`

	// Window is about items that were, or may have been, stored lately.
	Window WindowPolicy `json:"window"`

	// Redeliver sends items that are recorded as delivered, too.
	Redeliver bool `json:"redeliver,omitempty"`

	// ResendInDoubt sends items that may have been stored also when SQS may have
	// forgotten them, by the rules of Window: at least once. Without it they are
	// indeterminate then, and stop their groups.
	ResendInDoubt bool `json:"resend_in_doubt,omitempty"`
}

// Action is what is planned for an item.
type Action uint8

const (
	// ActionSend sends it.
	ActionSend Action = iota

	// ActionWait sends it when SQS has forgotten it.
	ActionWait

	// ActionSkip does not send it. Its group goes on.
	ActionSkip

	// ActionHold does not send it, because it may have been stored and SQS may have
	// forgotten it. It is indeterminate.
	ActionHold

	// ActionConflict does not send it, because its dedupe key belongs to another message.
	ActionConflict

	// ActionDrift sends it only if its source has again what was recorded.
	ActionDrift
)

var actionNames = names{"send", "wait", "skip", "hold", "conflict", "drift"}

// String returns the action as a plan has it.
func (a Action) String() string { return actionNames.of(uint8(a), "Action") }

// MarshalText returns String.
func (a Action) MarshalText() ([]byte, error) { return actionNames.marshal(uint8(a), "Action") }

// UnmarshalText is the inverse of MarshalText.
func (a *Action) UnmarshalText(text []byte) error {
	return actionNames.unmarshal(text, (*uint8)(a), "Action")
}

// Why an item is skipped.
const (
	ReasonDelivered    = "delivered"     // the source recorded it as delivered
	ReasonDiscarded    = "discarded"     // somebody decided that it is not to be sent
	ReasonRepeated     = "repeated"      // the plan has the same message before it
	ReasonWindow       = "window"        // SQS would suppress it, or might
	ReasonGroupStopped = "group stopped" // an earlier item of its group was not sent
)

// PlannedItem is one line of a plan. It holds no payload.
type PlannedItem struct {
	// Number counts the items of the plan from 0, in the order of the source.
	Number   int    `json:"n"`
	Position string `json:"position"`

	Group       string    `json:"group"`
	DedupeKey   string    `json:"dedupe_key"`
	EventID     uuid.UUID `json:"event_id"`
	EventSource string    `json:"event_source"`

	// BodyHash is the recorded SHA-256 of the body, or if none is recorded the one that
	// it had when the plan was made, in hexadecimal. Only a body that has it is sent.
	BodyHash string `json:"body_hash"`
	Size     int    `json:"size"` // of the body in bytes

	Status    Status    `json:"status"`
	Time      time.Time `json:"time,omitzero"` // the one that Filter bounds
	Sent      Sent      `json:"sent,omitzero"`
	MessageID string    `json:"message_id,omitempty"`

	// Label is the one at Plan.Made.
	Label  Label  `json:"label"`
	Action Action `json:"action"`

	// Reason says why the item is not sent.
	Reason string `json:"reason,omitempty"`
}

// Plan is what a run does. It is made by [NewPlan] or [ReadPlan] and not changed after.
type Plan struct {
	// ID is the SHA-256 of the plan in its written form, in hexadecimal.
	ID string

	Source  string // its name
	Made    time.Time
	Options Options

	// Excluded is how many items of the source the filter left out.
	Excluded int

	Items []PlannedItem
}

// NewPlan reads the source and decides for each item. It makes no request. The plan is
// a function of what the source yields, of the options and of now.
//
// All items are read before the filter leaves any out by time or status, so that one
// line that says "not stored" and another that says "delivered" are one delivered
// item. The plan takes memory for each item, a few hundred bytes, but for no body.
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
		item := plan(&it)
		f := &o.Filter
		if !selects(f.EventSources, item.EventSource) || !selects(f.DedupeKeys, item.DedupeKey) || !selects(f.Groups, item.Group) {
			p.Excluded++
			continue
		}
		all = append(all, item)
	}
	variants := fold(all)
	for i := range all {
		item := &all[i]
		if f := &o.Filter; !selects(f.Statuses, item.Status) || !f.From.IsZero() && item.Time.Before(f.From) || !f.Before.IsZero() && !item.Time.Before(f.Before) {
			p.Excluded++
			continue
		}
		if item.Status == Pending {
			item.Sent = Sent{}
		} else if item.Sent.To.IsZero() {
			item.Sent.To = p.Made
		}
		item.decide(o, p.Made)
		variants.judge(i, item)
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
	case o.Window > WindowWait:
		return fmt.Errorf("replay: Options.Window: unknown value %d; use WindowSkip, WindowSend or WindowWait", o.Window)
	}
	for _, s := range o.Filter.Statuses {
		if s > Discarded {
			return fmt.Errorf("replay: Options.Filter.Statuses: unknown value %d", s)
		}
	}
	return nil
}

// plan returns what the plan keeps of an item.
func plan(it *Item) PlannedItem {
	p := PlannedItem{
		Position: it.Position, Status: it.Status, MessageID: text(it.MessageID),
		Sent: Sent{From: it.Sent.From.UTC().Round(0), To: it.Sent.To.UTC().Round(0)},
		// What was recorded wins, so that a drift shows at the send, too.
		Group: it.Group, DedupeKey: it.DedupeKey, BodyHash: it.BodyHash,
	}
	if p.Reason = text(it.drift()); p.Reason != "" {
		p.Action = ActionDrift
	}
	if m := it.Message; m != nil {
		p.Group, p.BodyHash, p.Size = cmp.Or(p.Group, m.Group), cmp.Or(p.BodyHash, hashOf(m.Body)), len(m.Body)
		if p.Action != ActionDrift { // else the rest of it is as doubtful
			p.DedupeKey, p.EventID = cmp.Or(p.DedupeKey, m.DedupeKey), m.EventID
		}
		if e, err := open(m.Body); err == nil {
			p.EventSource, p.Time = text(e.EventSource), e.EventTime.UTC()
		}
	}
	if !p.Sent.To.IsZero() {
		p.Time = p.Sent.To
	}
	p.Group, p.DedupeKey, p.BodyHash = text(p.Group), text(p.DedupeKey), text(p.BodyHash)
	return p
}

// What a line of a plan holds is bounded. A group has at most 128 bytes and a dedupe
// key 1,024, or the producer refuses the message.
const (
	maxPosition = 4096
	maxText     = 2048
)

// text returns a text that JSON keeps and a plan has room for. No message that SQS
// accepts has another one.
func text(s string) string {
	if utf8.ValidString(s) && len(s) <= maxText {
		return s
	}
	return fmt.Sprintf("%.200q, %d bytes", s, len(s))
}

// decide sets the label and the action.
func (p *PlannedItem) decide(o Options, now time.Time) {
	p.Label = p.Sent.Label(now)
	a, reason := p.act(o, p.Label)
	if p.Action != ActionDrift || reason == ReasonDelivered || reason == ReasonDiscarded { // of which nobody needs the body
		p.Action, p.Reason = a, reason
	}
}

// act returns what the options say of an item with the label.
func (p *PlannedItem) act(o Options, l Label) (Action, string) {
	switch {
	case p.Status == Discarded:
		return ActionSkip, ReasonDiscarded
	case p.Status == Delivered && !o.Redeliver:
		return ActionSkip, ReasonDelivered
	case p.Status == InDoubt && l == Inside: // if it is there, SQS suppresses it, and else it was missing
		return ActionSend, ""
	case p.Status == InDoubt && !o.ResendInDoubt:
		return ActionHold, "it may have been stored, and SQS may have forgotten it"
	case l == New || l == Outside || o.Window == WindowSend:
		return ActionSend, ""
	case o.Window == WindowWait:
		return ActionWait, ""
	default:
		return ActionSkip, ReasonWindow
	}
}
