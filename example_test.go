package sqsfifo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Scene is the event type of the examples.
type Scene struct {
	ID       string    `json:"id"`
	PathRow  string    `json:"path_row"`
	Acquired time.Time `json:"acquired"`
	Cloud    float64   `json:"cloud_cover"`
}

var scene = Scene{
	ID: "LC08_L2SP_047027_20201204_20210313_02_T1", PathRow: "047027",
	Acquired: time.Date(2020, 12, 4, 19, 2, 11, 194_000_000, time.UTC), Cloud: 1.55,
}

const source = "kfm.remote-sensing.landsat-refresh"

func config() sqsfifo.Config[Scene] {
	return sqsfifo.Config[Scene]{
		QueueURL: "https://sqs.us-east-1.amazonaws.com/000000000000/scenes.fifo",
		Source:   source,
		Identify: identify,
	}
}

func identify(s Scene) (sqsfifo.Identity, error) {
	key, err := sqsfifo.JoinKey("landsat", s.ID)
	return sqsfifo.Identity{DedupeKey: key, Group: s.PathRow, Time: s.Acquired}, err
}

// scenes returns n scenes of one message group.
func scenes(n int) []Scene {
	out := make([]Scene, n)
	for i := range out {
		out[i] = Scene{ID: fmt.Sprintf("scene-%04d", i), PathRow: "000", Acquired: scene.Acquired}
	}
	return out
}

// This example shows a producer without this module: the two scenes differ only in an
// attribute, so SQS drops the second scene as a duplicate.
func Example_collapse() {
	ctx := context.Background()
	queue, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, acquired := range []string{"landsat-2025-12-04T00:00Z", "landsat-2025-12-20T00:00Z"} {
		_, err := queue.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl:       aws.String(queue.URL()),
			MessageGroupId: aws.String("p32r29"),
			MessageBody:    aws.String(`{"collection":"landsat","tile":"p32r29"}`),
			MessageAttributes: map[string]types.MessageAttributeValue{
				"unique_key": {DataType: aws.String("String"), StringValue: aws.String(acquired)},
			},
		})
		fmt.Println("sent", acquired, err)
	}
	for _, m := range queue.Messages() {
		fmt.Println("delivered", *m.Attributes["unique_key"].StringValue)
	}
	for _, s := range queue.Suppressed() {
		fmt.Println("lost", *s.Attributes["unique_key"].StringValue)
	}
	// Output:
	// sent landsat-2025-12-04T00:00Z <nil>
	// sent landsat-2025-12-20T00:00Z <nil>
	// delivered landsat-2025-12-04T00:00Z
	// lost landsat-2025-12-20T00:00Z
}

func ExampleProducer_Build() {
	queue, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	producer, err := sqsfifo.NewProducer(queue, config())
	if err != nil {
		fmt.Println(err)
		return
	}
	msg, err := producer.Build(scene)
	fmt.Println(msg.Body, err)
	// Output: {"dedupe_key":"landsat|LC08_L2SP_047027_20201204_20210313_02_T1","event_id":"01762f22-13fa-7e4c-a89b-094438f5fca0","event_source":"kfm.remote-sensing.landsat-refresh","event_time":"2020-12-04T19:02:11.194Z","payload":{"acquired":"2020-12-04T19:02:11.194Z","cloud_cover":1.55,"id":"LC08_L2SP_047027_20201204_20210313_02_T1","path_row":"047027"}} <nil>
}

// A program saves a message in its database and sends the message later. If the program
// crashes, it may send the saved message again: a resend within five minutes is a
// duplicate.
func ExampleProducer_SendMessage() {
	queue, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := config()
	c.QueueURL = queue.URL()
	producer, err := sqsfifo.NewProducer(queue, c)
	if err != nil {
		fmt.Println(err)
		return
	}
	msg, err := producer.Build(scene)
	if err != nil {
		fmt.Println(err)
		return
	}
	stored, err := json.Marshal(msg) // store this text in the database, in the transaction that stores the scene
	if err != nil {
		fmt.Println(err)
		return
	}

	for range 2 { // sending the message again is safe
		var again sqsfifo.Message
		if err := json.Unmarshal(stored, &again); err != nil {
			fmt.Println(err)
			return
		}
		receipt, err := producer.SendMessage(context.Background(), &again)
		fmt.Println("duplicate:", receipt.Duplicate, err)
	}
	// Output:
	// duplicate: false <nil>
	// duplicate: true <nil>
}

// Preflight reports everything that is wrong with a queue before the first event.
func ExampleProducer_Preflight() {
	queue, err := sqstest.NewQueue(sqstest.Config{DisableContentBasedDeduplication: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := config()
	c.QueueURL = queue.URL()
	producer, err := sqsfifo.NewProducer(queue, c)
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := producer.Preflight(context.Background())
	fmt.Println("FIFO:", report.FIFO)
	var wrong *sqsfifo.QueueError
	if errors.As(err, &wrong) {
		fmt.Println(wrong.Problems[0])
	}
	// Output:
	// FIFO: true
	// ContentBasedDeduplication is off; set the attribute to true, or set Config.Deduplication to DeduplicationExplicit
}

func ExampleProducer_SendBatch() {
	queue, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := config()
	c.QueueURL = queue.URL()
	producer, err := sqsfifo.NewProducer(queue, c)
	if err != nil {
		fmt.Println(err)
		return
	}
	results := producer.SendBatch(context.Background(), []Scene{scene, {ID: "no time"}, scene})
	for _, r := range results {
		var violation *sqsfifo.ViolationError
		switch {
		case errors.As(r.Err, &violation):
			fmt.Println("refused:", violation.Findings[0].Rule)
		case r.Err != nil:
			fmt.Println(r.Err)
		default:
			fmt.Println("stored, duplicate:", r.Receipt.Duplicate)
		}
	}
	// Output:
	// stored, duplicate: false
	// refused: SF044
	// stored, duplicate: true
}

// FateOf says whether the event is stored and whether a resend is safe.
func ExampleFateOf() {
	handle := func(err error) {
		switch sqsfifo.FateOf(err) {
		case sqsfifo.FateStored:
			fmt.Println("done")
		case sqsfifo.FateNotStored:
			fmt.Println("surely not stored; send it again at any time")
		case sqsfifo.FateInDoubt:
			var doubt *sqsfifo.InDoubtError
			if errors.As(err, &doubt) {
				fmt.Println("may be stored; send the same event again before", doubt.ResendBefore.Format(time.TimeOnly))
			}
		case sqsfifo.FateAltered:
			fmt.Println("something on the way changes messages")
		default:
			fmt.Println("not the error of an event")
		}
	}
	handle(nil)
	handle(&sqsfifo.NotStoredError{Attempts: 3, Code: "RequestThrottled"})
	handle(fmt.Errorf("scene 17: %w", &sqsfifo.InDoubtError{Attempts: 1, ResendBefore: time.Date(2025, 12, 4, 0, 4, 35, 0, time.UTC)}))
	// Output:
	// done
	// surely not stored; send it again at any time
	// may be stored; send the same event again before 00:04:35
}

// The fake queue has its own clock, so no test waits for five minutes until SQS forgets a
// message.
func Example_window() {
	ctx := context.Background()
	queue, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := config()
	c.QueueURL = queue.URL()
	producer, err := sqsfifo.NewProducer(queue, c)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, wait := range []time.Duration{0, 3 * time.Minute, 2 * time.Minute} {
		queue.Advance(wait)
		receipt, err := producer.Send(ctx, scene)
		fmt.Println("duplicate:", receipt.Duplicate, err)
	}
	// Output:
	// duplicate: false <nil>
	// duplicate: true <nil>
	// duplicate: false <nil>
}

func ExampleProducer_Send() {
	queue, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	producer, err := sqsfifo.NewProducer(queue, sqsfifo.Config[Scene]{
		QueueURL: queue.URL(),
		Source:   "kfm.remote-sensing.landsat-refresh",
		Identify: func(s Scene) (sqsfifo.Identity, error) {
			key, err := sqsfifo.JoinKey("landsat", s.ID)
			return sqsfifo.Identity{DedupeKey: key, Group: s.PathRow, Time: s.Acquired}, err
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		receipt, err := producer.Send(context.Background(), scene)
		fmt.Println(receipt.Duplicate, err)
	}
	fmt.Println(len(queue.Messages()), "message")
	// Output:
	// false <nil>
	// true <nil>
	// 1 message
}
