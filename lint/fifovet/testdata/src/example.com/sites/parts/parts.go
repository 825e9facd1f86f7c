// Package parts has call sites with values from parts of other values: from functions, // want package:"reach"
// iterators, interfaces and channels.
package parts

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"

	"example.com/sites/parts/lib"
)

type parcel struct{ ID, Text string }

type depot struct {
	client   *sqs.Client
	queueURL string
	ticket   func() string
	office   *lib.Office
}

func input(id, text string) *sqs.SendMessageInput {
	return &sqs.SendMessageInput{QueueUrl: aws.String(lib.OrdersURL()), MessageBody: &text, MessageGroupId: aws.String("g"), MessageDeduplicationId: &id}
}

func openDepot(c *sqs.Client) *depot { return &depot{client: c, ticket: uuid.NewString} }

// site function in a field: wrong SF002
func (d *depot) field(ctx context.Context, p parcel) error {
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(lib.OrdersURL()), MessageBody: &p.Text, MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String(d.ticket()), // want `SF002: MessageDeduplicationId comes from uuid.NewString`
	})
	return err
}

// site two IDs of one function of another package: wrong SF002
func (d *depot) made(ctx context.Context, p, q parcel) error {
	of := lib.Maker()
	for _, in := range []*sqs.SendMessageInput{
		{QueueUrl: aws.String(lib.OrdersURL()), MessageBody: &p.Text, MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String(of())}, // want `SF002: MessageDeduplicationId comes from lib.Maker`
		{QueueUrl: aws.String(lib.OrdersURL()), MessageBody: &q.Text, MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String(of())}, // want `SF002: MessageDeduplicationId comes from lib.Maker`
	} {
		if _, err := d.client.SendMessage(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

// site declared function of another package as a value: wrong SF002
func (d *depot) direct(ctx context.Context, p parcel) error {
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(lib.OrdersURL()), MessageBody: &p.Text, MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String(lib.Direct()()), // want `SF002`
	})
	return err
}

// site iterator of another package: wrong SF002
func (d *depot) tokens(ctx context.Context, p parcel) error {
	for id := range lib.Tokens() {
		_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: aws.String(lib.OrdersURL()), MessageBody: &p.Text, MessageGroupId: aws.String("g"), MessageDeduplicationId: &id, // want `SF002: MessageDeduplicationId comes from lib.Tokens`
		})
		return err
	}
	return nil
}

// site getter of another package: wrong SF002
func (d *depot) getter(ctx context.Context, p parcel) error {
	t := lib.NewTicket()
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(lib.OrdersURL()), MessageBody: &p.Text, MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String(t.Number()), // want `SF002`
	})
	return err
}

// site getter of a ticket for the event: right
func (d *depot) ticketOf(ctx context.Context, p parcel) error {
	t := lib.TicketOf(p.ID)
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(lib.OrdersURL()), MessageBody: &p.Text, MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String(t.Number()),
	})
	return err
}

type fresh struct{ id string }

func (f fresh) Key() string { return f.id } // want Key:`getter\.id`

type kept struct{ parcel }

func (k kept) Key() string { return k.ID } // want Key:`getter\.parcel\.ID`

// site method of a type parameter of another package: wrong SF002
func (d *depot) typed(ctx context.Context, p parcel) error {
	return lib.Send(ctx, d.client, fresh{uuid.NewString()}, p.Text) // want `SF002`
}

// site stable method of a type parameter: right
func (d *depot) typedRight(ctx context.Context, p parcel) error {
	return lib.Send(ctx, d.client, kept{p}, p.Text)
}

//go:embed hello.json
var hello string

// site embedded body: wrong SF004
func (d *depot) embedded(ctx context.Context) error {
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(lib.OrdersURL()), MessageGroupId: aws.String("g"), MessageBody: &hello, // want `SF004: the body is the constant "file hello.json"`
	})
	return err
}

// site send without a group to a queue of another package: wrong SF009
func (d *depot) named(ctx context.Context, p parcel) error {
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(lib.OrdersURL()), MessageBody: &p.Text}) // want `SF009`
	return err
}

func ids() iter.Seq[string] {
	return func(yield func(string) bool) {
		for range 3 {
			if !yield(uuid.NewString()) {
				return
			}
		}
	}
}

// site collected iterator: wrong SF002
func (d *depot) collected(ctx context.Context, p parcel) error {
	_, err := d.client.SendMessage(ctx, input(slices.Collect(ids())[0], p.Text)) // want `SF002`
	return err
}

// site attempts by an iterator: wrong SF006
func (d *depot) attempts(ctx context.Context, p parcel) error {
	var err error
	for range lib.Retries(3) {
		id := uuid.NewString() // want `SF006: uuid.NewString runs again for each attempt`
		_, err = d.client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: aws.String(lib.OrdersURL()), MessageBody: &p.Text, MessageGroupId: aws.String("g"), MessageDeduplicationId: &id,
		})
		if err == nil {
			break
		}
	}
	return err
}

// site one ID before attempts by an iterator: right
func (d *depot) attemptsRight(ctx context.Context, p parcel) error {
	var err error
	for range lib.Retries(3) {
		_, err = d.client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: aws.String(lib.OrdersURL()), MessageBody: &p.Text, MessageGroupId: aws.String("g"), MessageDeduplicationId: &p.ID,
		})
		if err == nil {
			return nil
		}
	}
	return err
}

// site number of the attempt: wrong SF006
func (d *depot) numbered(ctx context.Context, p parcel) error {
	var err error
	for attempt := range 5 {
		_, err = d.client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: aws.String(lib.OrdersURL()), MessageBody: &p.Text, MessageGroupId: aws.String("g"),
			MessageDeduplicationId: aws.String(fmt.Sprintf("%s-%d", p.ID, attempt)), // want `SF006: MessageDeduplicationId contains the number of the attempt`
		})
		if err == nil {
			return nil
		}
	}
	return err
}

// site number of the attempt in the body: wrong SF006
func (d *depot) numberedBody(ctx context.Context, p parcel) error {
	var err error
	for attempt := 0; attempt < 5; attempt++ {
		_, err = d.client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: aws.String(lib.OrdersURL()), MessageGroupId: aws.String("g"),
			MessageBody: aws.String(p.Text + strconv.Itoa(attempt)), // want `SF006: MessageBody contains the number of the attempt`
		})
		if err == nil {
			return nil
		}
	}
	return err
}

// site number of the line: right
func (d *depot) lines(ctx context.Context, p parcel, lines []string) error {
	var failed error
	for i, line := range lines {
		_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: aws.String(lib.OrdersURL()), MessageBody: &line, MessageGroupId: aws.String("g"),
			MessageDeduplicationId: aws.String(fmt.Sprintf("%s-%d", p.ID, i)),
		})
		if err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// site one message in each round: right
func (d *depot) again(ctx context.Context, p parcel) error {
	for range 3 {
		_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: aws.String(lib.OrdersURL()), MessageBody: aws.String("here is " + p.ID), MessageGroupId: aws.String("g"), MessageDeduplicationId: &p.ID,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// site one ID for a batch: wrong SF016
func (d *depot) batch(ctx context.Context, request string, bodies []string) error {
	var entries []types.SendMessageBatchRequestEntry
	for i, b := range bodies {
		entries = append(entries, types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), MessageBody: &b, MessageGroupId: aws.String("g"), MessageDeduplicationId: &request, // want `SF016: MessageDeduplicationId is the same in each round`
		})
	}
	out, err := d.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(lib.OrdersURL()), Entries: entries})
	if err == nil && len(out.Failed) > 0 {
		return errors.New("refused")
	}
	return err
}

// site two entries of one batch: wrong SF016
func (d *depot) entries(ctx context.Context, p parcel) error {
	out, err := d.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{
		QueueUrl: aws.String(lib.OrdersURL()),
		Entries: []types.SendMessageBatchRequestEntry{
			{Id: aws.String("a"), MessageBody: aws.String("packed " + p.ID), MessageGroupId: aws.String("g"), MessageDeduplicationId: &p.ID},
			{Id: aws.String("b"), MessageBody: aws.String("sent " + p.ID), MessageGroupId: aws.String("g"), MessageDeduplicationId: &p.ID}, // want `SF016: MessageDeduplicationId is also the ID of another body`
		},
	})
	if err == nil && len(out.Failed) > 0 {
		return errors.New("refused")
	}
	return err
}

// site one ID for a range over an iterator: wrong SF016
func (d *depot) each(ctx context.Context, request string, bodies iter.Seq[string]) error {
	for b := range bodies {
		_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: aws.String(lib.OrdersURL()), MessageBody: &b, MessageGroupId: aws.String("g"), MessageDeduplicationId: &request, // want `SF016: MessageDeduplicationId is the same in each round`
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// site chain of calls through another package: wrong SF016
func (d *depot) chain(ctx context.Context, p parcel) error {
	if err := d.office.Post(ctx, p.ID, "packed "+p.Text); err != nil {
		return err
	}
	return d.office.Post(ctx, p.ID, "sent "+p.Text) // want `SF016`
}

// site one ID in a loop of calls of another package: wrong SF016
func (d *depot) calls(ctx context.Context, request string, bodies []string) error {
	for _, b := range bodies {
		if err := d.office.Post(ctx, request, b); err != nil { // want `SF016`
			return err
		}
	}
	return nil
}

// site ID of each element: right
func (d *depot) elements(ctx context.Context, parcels []parcel) error {
	for _, p := range parcels {
		if err := d.office.Post(ctx, p.ID, p.Text); err != nil {
			return err
		}
	}
	return nil
}

// site counter of the loop: right
func (d *depot) counted(ctx context.Context, request string, bodies []string) error {
	n := 0
	for _, b := range bodies {
		n++
		if err := d.office.Post(ctx, request+strconv.Itoa(n), b); err != nil {
			return err
		}
	}
	return nil
}

type numbers struct{ last int }

func (n *numbers) next() string { n.last++; return strconv.Itoa(n.last) }

// site counter in a struct: right
func (d *depot) countedByStruct(ctx context.Context, request string, n *numbers, bodies []string) error {
	for _, b := range bodies {
		if err := d.office.Post(ctx, request+n.next(), b); err != nil {
			return err
		}
	}
	return nil
}

// site one body for each queue: right
func (d *depot) queues(ctx context.Context, id string, urls []string) error {
	for _, url := range urls {
		_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &url, MessageGroupId: aws.String("g"), MessageDeduplicationId: &id})
		if err != nil {
			return err
		}
	}
	return nil
}

// site dead message that a tool sends again: wrong SF002
func (d *depot) redrive(ctx context.Context, dead types.Message) error {
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(lib.OrdersURL()), MessageBody: dead.Body, MessageGroupId: aws.String("g"),
		MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF002: warning: MessageDeduplicationId comes from uuid.NewString: each run stores it again`
	})
	return err
}

// site button of an administrator: wrong SF002
func (d *depot) button(w http.ResponseWriter, r *http.Request) {
	_, err := d.client.SendMessage(r.Context(), &sqs.SendMessageInput{
		QueueUrl: aws.String(lib.OrdersURL()), MessageBody: aws.String(r.FormValue("body")), MessageGroupId: aws.String("g"),
		MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF002: warning: MessageDeduplicationId comes from uuid.NewString: each run stores it again`
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
}

// Written is what an administrator writes.
type Written struct {
	Text       string
	Attributes map[string]string
}

// Console sends what an administrator has written to any queue.
//
// site client for any queue: wrong SF002
func Console(ctx context.Context, client *sqs.Client, queueURL string, w Written) error { // want Console:"sink QueueUrl MessageBody MessageGroupId"
	in := sqs.SendMessageInput{QueueUrl: &queueURL, MessageBody: &w.Text}
	if group, ok := w.Attributes["MessageGroupId"]; ok {
		id := uuid.NewString()
		in.MessageGroupId = &group
		in.MessageDeduplicationId = &id // want `SF002: warning: MessageDeduplicationId comes from uuid.NewString`
	}
	_, err := client.SendMessage(ctx, &in)
	return err
}

// Bury sends a message that a consumer gives up to the queue of dead letters.
//
// site dead letters, queue, body and group from the caller: wrong SF002
func (d *depot) Bury(ctx context.Context, queueURL string, body []byte, group string) error { // want Bury:"sink QueueUrl MessageBody MessageGroupId"
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &queueURL, MessageBody: aws.String(string(body)), MessageGroupId: &group,
		MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF002: warning: MessageDeduplicationId comes from uuid.NewString: a retry by the caller is stored twice; let the caller set it`
	})
	return err
}

type dlqPublisher struct{ client *sqs.Client }

// site publisher for dead letters whose queue and group are looked up: wrong SF002
func (p *dlqPublisher) send(ctx context.Context, from string, body []byte) error {
	queue, err := p.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(strings.TrimSuffix(from, ".fifo") + "-dead.fifo")})
	if err != nil {
		return err
	}
	in := &sqs.SendMessageInput{QueueUrl: queue.QueueUrl, MessageBody: aws.String(string(body)), MessageGroupId: &from}
	in.MessageDeduplicationId = aws.String(uuid.NewString()) // want `SF002: warning: MessageDeduplicationId comes from uuid.NewString: each run stores it again`
	_, err = p.client.SendMessage(ctx, in)
	return err
}

// site queue, body and group from a caller in the package: wrong SF002
func (d *depot) bury(ctx context.Context, queueURL, body, group string) error {
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &queueURL, MessageBody: &body, MessageGroupId: &group,
		MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF002: MessageDeduplicationId comes from uuid.NewString: a retry is stored twice; derive it`
	})
	return err
}

// Keep sends to the queue of the depot.
//
// site queue of the receiver, body and group from the caller: wrong SF002
func (d *depot) Keep(ctx context.Context, body, group string) error { // want Keep:"sink QueueUrl MessageBody MessageGroupId"
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &d.queueURL, MessageBody: &body, MessageGroupId: &group,
		MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF002: MessageDeduplicationId comes from uuid.NewString: a retry is stored twice; derive it`
	})
	return err
}

// Line sends to any queue, in one group.
//
// site queue and body from the caller, one group: wrong SF002
func (d *depot) Line(ctx context.Context, queueURL, body string) error { // want Line:"sink QueueUrl MessageBody"
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &queueURL, MessageBody: &body, MessageGroupId: aws.String("g"),
		MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF002: MessageDeduplicationId comes from uuid.NewString: a retry is stored twice; derive it`
	})
	return err
}

// Publish sends to the queue of parcels.
//
// site body and group from the caller: wrong SF002
func (d *depot) Publish(ctx context.Context, body, group string) error { // want Publish:"sink MessageBody MessageGroupId"
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(lib.OrdersURL()), MessageBody: &body, MessageGroupId: &group,
		MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF002: MessageDeduplicationId comes from uuid.NewString: a retry is stored twice; derive it`
	})
	return err
}

// Announce builds the body.
//
// site queue and group from the caller: wrong SF002
func (d *depot) Announce(ctx context.Context, queueURL, group string, p parcel) error { // want Announce:"sink QueueUrl MessageBody MessageGroupId"
	body := strings.ToUpper(p.ID)
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &queueURL, MessageBody: &body, MessageGroupId: &group,
		MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF002: MessageDeduplicationId comes from uuid.NewString: a retry is stored twice; derive it`
	})
	return err
}

// site random group for a queue called FIFO: wrong SF007
func (d *depot) called(ctx context.Context, p parcel) error {
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(os.Getenv("PARCELS_FIFO_URL")), MessageBody: &p.Text, MessageGroupId: aws.String(uuid.NewString()), // want `SF007: MessageGroupId`
	})
	return err
}

// site retry with another body: right
func (d *depot) retried(ctx context.Context, id string, bodies []string) error {
	var err error
	for _, b := range bodies {
		_, err = d.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(lib.OrdersURL()), MessageBody: &b, MessageGroupId: aws.String("g"), MessageDeduplicationId: &id})
		if err == nil {
			return nil
		}
	}
	return err
}
