// Package caller uses a wrapper, and knows nothing of the AWS SDK. // want package:"reach"
package caller

import (
	"context"
	"time"

	"github.com/google/uuid"

	"example.com/wrapper/ids"
	"example.com/wrapper/queue"
	"example.com/wrapper/replaced"
)

type event struct {
	ID    string `json:"id"`
	Trace string `json:"-"`
}

func send(ctx context.Context, q *queue.Queue, id, body string) {
	_ = q.Send(ctx, id, "all", body)
	_ = q.Send(ctx, "", "all", body)
	_ = q.Send(ctx, uuid.NewString(), "all", body)                                  // want `SF002: MessageDeduplicationId \(through queue.Queue.Send\) comes from uuid.NewString`
	_ = q.Send(ctx, "same", "all", body)                                            // want `SF003: MessageDeduplicationId \(through queue.Queue.Send\) is the constant "same"`
	_ = q.Send(ctx, id, ids.Next(), body)                                           // want `SF007: .* comes from ids.Next calling uuid.New`
	_ = q.Put(ctx, &queue.Message{Dedup: ids.Event().ID, Group: "all", Body: body}) // want `SF002: MessageDeduplicationId \(through queue.Queue.Put\) comes from ids.Event calling uuid.New`
	_ = q.Put(ctx, &queue.Message{Dedup: ids.Event().Name, Group: ids.Group(id), Body: body})
	_ = q.Enqueue(ctx, "all", body)
	_ = q.Enqueue(ctx, "all", time.Now().String()) // want `SF012: info: if this queue is FIFO: the body holds time.Now`
	_ = q.Enqueue(ctx, "all", "wake up")           // want `SF004: info: if this queue is FIFO: the body is the constant "wake up"`
	_ = q.Send(ctx, replaced.Next(), "all", body)  // want `SF002: .* comes from replaced.Next calling uuid.NewString`
	_ = q.Publish(ctx, "all", event{ID: id, Trace: uuid.NewString()})
	_ = q.Publish(ctx, "all", &event{ID: uuid.NewString()}) // want `SF012: info: if this queue is FIFO: the body holds ID from uuid.NewString`
}
