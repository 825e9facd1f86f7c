// Package outbox sends batches through an interface of another package, // want package:"reach"
// which splits a batch that is too long.
package outbox

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"example.com/sites/outbox/box"
	"example.com/sites/outbox/cast"
)

type record interface {
	Attributes() map[string]any
	Text() (string, error)
}

type office struct {
	box    box.Box
	client *sqs.Client
	url    string
}

// site ID from the attributes of each record: right
func (o *office) write(ctx context.Context, records []record) error {
	for _, chunk := range cast.Chunks(records, 10) {
		letters, err := lettersOf(chunk)
		if err != nil {
			return err
		}
		if err := o.box.Post(ctx, letters); err != nil {
			return err
		}
	}
	return nil
}

func lettersOf(records []record) ([]*box.Letter, error) {
	var letters []*box.Letter
	for _, r := range records {
		l, err := letterOf(r)
		if err != nil {
			return nil, err
		}
		letters = append(letters, l)
	}
	return letters, nil
}

func letterOf(r record) (*box.Letter, error) {
	var id, group string
	var err error
	attributes := r.Attributes()
	if v, ok := attributes["group"]; ok {
		if group, err = cast.Text(v); err != nil {
			return nil, err
		}
	}
	if v, ok := attributes["id"]; ok {
		if id, err = cast.Text(v); err != nil {
			return nil, err
		}
	}
	body, err := r.Text()
	if err != nil {
		return nil, err
	}
	l := &box.Letter{Body: cast.Pointer(body), Group: cast.Pointer(group)}
	if id != "" {
		l.ID = cast.Pointer(id)
	}
	return l, nil
}

// site one ID for the letters of all chunks: wrong SF016
func (o *office) same(ctx context.Context, request string, records []record) error {
	for _, chunk := range cast.Chunks(records, 10) {
		var letters []*box.Letter
		for _, r := range chunk {
			body, err := r.Text()
			if err != nil {
				return err
			}
			letters = append(letters, &box.Letter{Body: &body, Group: cast.Pointer("g"), ID: &request})
		}
		if err := o.box.Post(ctx, letters); err != nil { // want `SF016`
			return err
		}
	}
	return nil
}

type note struct{ ID, Group, Text string }

var errRefused = errors.New("refused")

func entriesOf(notes []note) []types.SendMessageBatchRequestEntry {
	var entries []types.SendMessageBatchRequestEntry
	for _, n := range notes {
		entries = append(entries, types.SendMessageBatchRequestEntry{Id: &n.ID, MessageBody: &n.Text, MessageGroupId: &n.Group, MessageDeduplicationId: &n.ID})
	}
	return entries
}

// site batch that sends its halves: right
func (o *office) halves(ctx context.Context, notes []note) error {
	out, err := o.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &o.url, Entries: entriesOf(notes)})
	if err == nil && len(out.Failed) > 0 {
		return errRefused
	}
	if errors.Is(err, errRefused) && len(notes) > 1 {
		if err := o.halves(ctx, notes[:len(notes)/2]); err != nil {
			return err
		}
		return o.halves(ctx, notes[len(notes)/2:])
	}
	return err
}

type sender interface {
	send(ctx context.Context, notes []note) error
}

// site batch that sends its halves by an interface: right
func (o *office) send(ctx context.Context, notes []note) error {
	out, err := o.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &o.url, Entries: entriesOf(notes)})
	if err == nil && len(out.Failed) > 0 {
		return errRefused
	}
	var again sender = o
	for _, half := range [][]note{notes[:len(notes)/2], notes[len(notes)/2:]} {
		if len(notes) < 2 || err == nil {
			break
		}
		if err := again.send(ctx, half); err != nil {
			return err
		}
	}
	return err
}

// site batch and its parts call each other: right
func (o *office) whole(ctx context.Context, notes []note) error {
	out, err := o.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &o.url, Entries: entriesOf(notes)})
	if err == nil && len(out.Failed) > 0 {
		return errRefused
	}
	if err != nil && len(notes) > 1 {
		return o.parts(ctx, notes)
	}
	return err
}

func (o *office) parts(ctx context.Context, notes []note) error {
	for len(notes) > 0 {
		n := (len(notes) + 1) / 2
		if err := o.whole(ctx, notes[:n]); err != nil {
			return err
		}
		notes = notes[n:]
	}
	return nil
}

// site refused notes once more: right
func (o *office) refused(ctx context.Context, notes []note) error {
	for range 3 {
		out, err := o.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &o.url, Entries: entriesOf(notes)})
		if err != nil {
			return err
		}
		var refused []note
		for _, f := range out.Failed {
			for _, n := range notes {
				if n.ID == *f.Id {
					refused = append(refused, n)
				}
			}
		}
		if notes = refused; len(notes) == 0 {
			return nil
		}
	}
	return errRefused
}

// site refused entries after the batch: right
func (o *office) after(ctx context.Context, notes []note) error {
	entries := entriesOf(notes)
	out, err := o.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &o.url, Entries: entries})
	if err != nil {
		return err
	}
	var again []types.SendMessageBatchRequestEntry
	for _, f := range out.Failed {
		for _, e := range entries {
			if *e.Id == *f.Id {
				again = append(again, e)
			}
		}
	}
	out, err = o.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &o.url, Entries: again})
	if err == nil && len(out.Failed) > 0 {
		return errRefused
	}
	return err
}

// site refused entries one by one: right
func (o *office) oneByOne(ctx context.Context, notes []note) error {
	out, err := o.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &o.url, Entries: entriesOf(notes)})
	if err != nil {
		return err
	}
	for _, f := range out.Failed {
		for _, n := range notes {
			if n.ID != *f.Id {
				continue
			}
			_, err := o.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &o.url, MessageBody: &n.Text, MessageGroupId: &n.Group, MessageDeduplicationId: &n.ID})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *office) mint(n note) (string, error) { return cast.Text(n.ID) }

// site ID that a method asks of another package: right
func (o *office) asked(ctx context.Context, notes []note) error {
	for _, n := range notes {
		id, err := o.mint(n)
		if err != nil {
			return err
		}
		_, err = o.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &o.url, MessageBody: &n.Text, MessageGroupId: &n.Group, MessageDeduplicationId: &id})
		if err != nil {
			return err
		}
	}
	return nil
}

func textOf(v any) string { text, _ := cast.Text(v); return text }

// site ID of the request that a function converts: wrong SF016
func (o *office) converted(ctx context.Context, request any, notes []note) error {
	id := textOf(request)
	for _, n := range notes {
		_, err := o.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &o.url, MessageBody: &n.Text, MessageGroupId: &n.Group, MessageDeduplicationId: &id}) // want `SF016`
		if err != nil {
			return err
		}
	}
	return nil
}

// site one ID for letters of a loop: wrong SF016
func (o *office) oneID(ctx context.Context, request string, texts []string) error {
	var letters []*box.Letter
	for _, text := range texts {
		letters = append(letters, &box.Letter{ID: &request, Body: &text, Group: &request})
	}
	return o.box.Post(ctx, letters) // want `SF016: MessageDeduplicationId .through box.Box.Post. is the same in each round`
}

// site one ID for each letter of a loop: right
func (o *office) ownID(ctx context.Context, texts map[string]string) error {
	var letters []*box.Letter
	for id, text := range texts {
		letters = append(letters, &box.Letter{ID: &id, Body: &text, Group: &id})
	}
	return o.box.Post(ctx, letters)
}

// site one letter with the lines of a loop: right
func (o *office) oneLetter(ctx context.Context, request string, lines []string) error {
	var text []byte
	for _, line := range lines {
		text = append(text, line...)
	}
	body := string(text)
	return box.Mail(ctx, o.client, []box.Letter{{ID: &request, Body: &body, Group: &request}})
}

// site ID that a function makes from its arguments: right
func (o *office) joined(ctx context.Context, request string, lines []string) error {
	for _, line := range lines {
		if err := o.lines(ctx, line, request); err != nil {
			return err
		}
	}
	return nil
}

func (o *office) lines(ctx context.Context, line, request string) error {
	id := line + "-" + request
	_, err := o.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &o.url, MessageBody: &line, MessageGroupId: &request, MessageDeduplicationId: &id})
	return err
}

// site ID that a function makes from its other argument: right
func (o *office) joinedOther(ctx context.Context, request string, lines []string) error {
	for _, line := range lines {
		if err := o.others(ctx, line, request); err != nil {
			return err
		}
	}
	return nil
}

func (o *office) others(ctx context.Context, line, request string) error {
	id := request + "-" + line
	_, err := o.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &o.url, MessageBody: &line, MessageGroupId: &request, MessageDeduplicationId: &id})
	return err
}

// site letters whose IDs end in their bodies: right
func (o *office) signed(ctx context.Context, request string, texts []string) error {
	var letters []box.Letter
	for _, text := range texts {
		letters = append(letters, box.Letter{ID: &request, Body: &text, Group: &request})
	}
	return box.Signed(ctx, o.client, letters)
}

// site one body of a loop for a list of IDs: right
func (o *office) copied(ctx context.Context, ids, texts []string) error {
	var lines []string
	for _, text := range texts {
		lines = append(lines, text)
	}
	return box.Copies(ctx, o.client, ids, lines)
}
