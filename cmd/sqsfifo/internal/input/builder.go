package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/messageline"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Kind says what a line of the input contains.
type Kind string

const (
	// Auto takes the kind of the first JSON object that agrees with the flags: each kind
	// requires some flags and permits no others. All later lines must have the same kind.
	Auto Kind = "auto"

	// Payload is any JSON object. The templates in [Spec] make the dedupe key, group and
	// time of the event from the object's members.
	Payload Kind = "payload"

	// Envelope is a complete message body: an object with the five members of the message
	// contract, such as dedupe_key.
	Envelope Kind = "envelope"

	// Message is the result of Producer.Build as JSON.
	Message Kind = "message"
)

// Spec describes how lines become messages. Each field is the value of a command line flag,
// such as --key for Key; errors name the flag.
//
// Some fields are templates (see [Template]), such as "scene|{/id}". Builder replaces {/id}
// by the line's member "id".
type Spec struct {
	Kind       Kind
	Source     string // template of event_source, if the lines are payloads
	Key        string // template of the dedupe key, if the lines are payloads
	Group      string // template of the message group, if the lines are payloads or envelopes
	Time       string // template of the event's time, if the lines are payloads
	TimeFormat string // rfc3339, date, unix or unixms
	EventID    string // template of the event's ID, a UUIDv7, if the lines are payloads; with "" the producer derives it
	Attributes map[string]string
}

// Event is a payload with its dedupe key, group, time and event ID.
type Event struct {
	payload  json.RawMessage
	identity sqsfifo.Identity
}

// MarshalJSON returns the payload.
func (e Event) MarshalJSON() ([]byte, error) { return e.payload, nil }

// Builder makes messages from lines. It is not safe for concurrent use.
type Builder struct {
	spec      Spec
	queue     *sqsfifo.Queue
	kind      Kind
	templates map[string]Template
	key       Key
	producers map[string]*sqsfifo.Producer[Event] // by event source
}

// NewBuilder returns a builder of messages to the queue. The error names each flag with an
// invalid value.
func NewBuilder(queue *sqsfifo.Queue, spec Spec) (*Builder, error) {
	b := &Builder{spec: spec, queue: queue, kind: spec.Kind, templates: map[string]Template{}, producers: map[string]*sqsfifo.Producer[Event]{}}
	var errs []error
	add := func(flag, text string) {
		if text == "" {
			return
		}
		t, err := ParseTemplate(text)
		if flag == "--key" {
			b.key, err = ParseKey(text)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", flag, err))
			return
		}
		b.templates[flag] = t
	}
	for _, f := range spec.flags() {
		add(f.name, f.text)
	}
	for name, text := range spec.Attributes {
		add("--attribute "+name, text)
	}
	if source, ok := b.templates["--source"].literal(); ok && source != "" {
		errs = append(errs, checkSource(source))
	}
	if b.kind != Auto {
		errs = append(errs, b.require())
	}
	return b, errors.Join(errs...)
}

type flagText struct{ name, text string }

func (s Spec) flags() []flagText {
	return []flagText{{"--source", s.Source}, {"--key", s.Key}, {"--group", s.Group}, {"--time", s.Time}, {"--event-id", s.EventID}}
}

// checkSource returns an error that names the flag --source if an event source breaks the
// contract.
func checkSource(source string) error {
	faults := lint.Contract{}.CheckSource(source)
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("--source %q: %s", source, faults[0].Message)
}

// require checks that the flags fit the kind of the lines. It returns an error for
// missing flags, and for flags that this kind does not use.
func (b *Builder) require() error {
	needed := map[Kind][]string{Payload: {"--source", "--key", "--group", "--time"}, Envelope: {"--group"}}[b.kind]
	var missing, extra []string
	for _, f := range b.spec.flags() {
		need := slices.Contains(needed, f.name)
		switch {
		case need && f.text == "":
			missing = append(missing, f.name)
		case !need && f.text != "" && (b.kind != Payload || f.name != "--event-id"):
			extra = append(extra, f.name)
		}
	}
	if b.kind == Message && len(b.spec.Attributes) > 0 {
		extra = append(extra, "--attribute")
	}
	what := map[Kind]string{Payload: "payloads", Envelope: "envelopes", Message: "built messages"}[b.kind]
	var errs []error
	if len(missing) > 0 {
		errs = append(errs, fmt.Errorf("the lines are %s, which need %s (see \"sqsfifo help templates\")", what, strings.Join(missing, ", ")))
	}
	if len(extra) > 0 {
		errs = append(errs, fmt.Errorf("the lines are %s, which have their own: remove %s, or say --input payload", what, strings.Join(extra, ", ")))
	}
	return errors.Join(errs...)
}

// Build returns the message of a line. The error is a [*LineError].
func (b *Builder) Build(l Line) (*sqsfifo.Message, error) {
	m, err := b.build(l.Text)
	if err == nil {
		return m, nil
	}
	wrong := l.Wrong(err)
	if l.Number == 1 && errors.Is(err, canonicaljson.ErrSyntax) && (string(l.Text) == "{" || string(l.Text) == "[") {
		wrong.Err = fmt.Errorf("%w (--whole takes a file for one event)", wrong.Err)
	}
	return nil, wrong
}

func (b *Builder) build(text []byte) (*sqsfifo.Message, error) {
	canonical, err := canonicaljson.CanonicalizeStrict(text)
	if err != nil {
		return nil, messageline.Plain(err)
	}
	var event any
	d := json.NewDecoder(bytes.NewReader(canonical))
	d.UseNumber()
	if err := d.Decode(&event); err != nil {
		return nil, err
	}
	object, ok := event.(map[string]any)
	if !ok {
		return nil, messageline.ErrNotObject
	}
	if b.kind == Auto {
		b.kind = detect(object)
		if err := b.require(); err != nil {
			b.kind = Auto
			return nil, err
		}
	} else if found := detect(object); b.spec.Kind == Auto && found != b.kind {
		return nil, fmt.Errorf("this line is of the kind %s, and the first one is of the kind %s; send them apart, or say which with --input", found, b.kind)
	}
	switch b.kind {
	case Message:
		return b.message(text)
	case Envelope:
		return b.envelope(canonical, event)
	default:
		return b.payload(canonical, event)
	}
}

// detect returns the kind of a line. It looks at the names of the object's members.
func detect(object map[string]any) Kind {
	has := func(names ...string) bool {
		for _, name := range names {
			if _, ok := object[name]; !ok {
				return false
			}
		}
		return true
	}
	switch {
	case has("group", "body", "dedupe_key", "event_id"):
		return Message
	case len(object) == 5 && has("dedupe_key", "event_id", "event_source", "event_time", "payload"):
		return Envelope
	}
	return Payload
}

func (b *Builder) message(text []byte) (*sqsfifo.Message, error) {
	l, err := messageline.Parse(text)
	if err == nil {
		err = l.Only(messageline.Built)
	}
	if err != nil {
		return nil, err
	}
	return &l.Message, b.check(&l.Message)
}

func (b *Builder) envelope(canonical []byte, event any) (*sqsfifo.Message, error) {
	m := &sqsfifo.Message{Body: string(canonical)}
	var is struct {
		DedupeKey string    `json:"dedupe_key"`
		EventID   uuid.UUID `json:"event_id"`
	}
	if err := b.setGroupAndAttributes(m, event); err != nil {
		return nil, err
	}
	// Check first: a finding names the place of the fault, an error of json.Unmarshal does
	// not.
	err := b.check(m)
	if err == nil {
		err = json.Unmarshal(canonical, &is)
	}
	m.DedupeKey, m.EventID = is.DedupeKey, is.EventID
	return m, err
}

// setGroupAndAttributes sets the message group and the attributes of m. It fills in the
// templates with the values of the event.
func (b *Builder) setGroupAndAttributes(m *sqsfifo.Message, event any) error {
	var err error
	if m.Group, err = b.text("--group", event); err != nil {
		return err
	}
	for name := range b.spec.Attributes {
		value, err := b.text("--attribute "+name, event)
		if err != nil {
			return err
		}
		if m.Attributes == nil {
			m.Attributes = map[string]string{}
		}
		m.Attributes[name] = value
	}
	return nil
}

func (b *Builder) check(m *sqsfifo.Message) error {
	return broken(lint.Check(lint.Message{
		Body: m.Body, GroupID: m.Group, Attributes: LintAttributes(m.Attributes),
	}))
}

// LintAttributes returns attributes of type String as attributes of package lint.
func LintAttributes(texts map[string]string) map[string]lint.Attribute {
	out := make(map[string]lint.Attribute, len(texts))
	for name, text := range texts {
		out[name] = lint.Attribute{DataType: "String", StringValue: text}
	}
	return out
}

// broken returns one error that lists the findings of severity error, or nil if there are
// none.
func broken(findings []lint.Finding) error {
	var texts []string
	for _, f := range findings {
		if f.Severity == lint.Error {
			texts = append(texts, f.String())
		}
	}
	if texts == nil {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}

func (b *Builder) text(flag string, event any) (string, error) {
	text, err := b.templates[flag].text(event)
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	return text, nil
}

func (b *Builder) payload(canonical []byte, event any) (*sqsfifo.Message, error) {
	source, err := b.text("--source", event)
	if err != nil {
		return nil, err
	}
	producer, err := b.producer(source)
	if err != nil {
		return nil, err
	}
	identity, err := b.identity(event)
	if err != nil {
		return nil, err
	}
	m := new(sqsfifo.Message)
	if err := b.setGroupAndAttributes(m, event); err != nil {
		return nil, err
	}
	identity.Group = m.Group
	built, err := producer.Build(Event{canonical, identity})
	var violation *sqsfifo.ViolationError
	if errors.As(err, &violation) {
		return nil, broken(violation.Findings)
	}
	if err != nil {
		return nil, err
	}
	if built.Attributes = m.Attributes; len(m.Attributes) > 0 {
		return built, b.check(built)
	}
	return built, nil
}

// mostSources is the largest number of event sources in one input.
const mostSources = 1000

func (b *Builder) producer(source string) (*sqsfifo.Producer[Event], error) {
	if p := b.producers[source]; p != nil {
		return p, nil
	}
	if err := checkSource(source); err != nil {
		return nil, err
	}
	if len(b.producers) == mostSources {
		return nil, fmt.Errorf("--source: more than %d sources; a source is a pipeline, not an entity", mostSources)
	}
	organization, _, _ := strings.Cut(source, ".")
	//sqsfifo:ignore SF020 -- a compliance test needs a function that builds events; these events are the user's input
	p, err := sqsfifo.NewProducerOn(b.queue, sqsfifo.Config[Event]{
		Source: source, Organization: organization,
		Identify: func(e Event) (sqsfifo.Identity, error) { return e.identity, nil },
	})
	if err == nil {
		b.producers[source] = p
	}
	return p, err
}
