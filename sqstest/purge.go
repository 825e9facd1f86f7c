package sqstest

// Deviations from AWS in this file: a purge is over at once, where AWS takes up to
// 60 s. What becomes of the deduplication IDs is disputed (F-022); see
// Config.PurgeKeepsIDs.

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// purgeInterval is how long a purge keeps the next one out (F-106).
const purgeInterval = time.Minute

// PurgeQueue removes every message, those in flight and those that are delayed
// too, and frees the deduplication IDs unless Config.PurgeKeepsIDs. A second purge
// within 60 s is refused (F-106). [Queue.Messages] still shows what was stored.
func (q *Queue) PurgeQueue(ctx context.Context, in *sqs.PurgeQueueInput, _ ...func(*sqs.Options)) (*sqs.PurgeQueueOutput, error) {
	return inProcess(ctx, "PurgeQueue", in, requirePurge, q.purge)
}

func (q *Queue) purge(_ context.Context, in *sqs.PurgeQueueInput) (*sqs.PurgeQueueOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	if !q.purged.IsZero() && now.Before(q.purged.Add(purgeInterval)) {
		return nil, purgeInProgress.because("Only one PurgeQueue operation on %s is allowed every 60 seconds.", q.config.Name)
	}
	q.purged = now
	q.delivery.clear()
	if !q.config.PurgeKeepsIDs {
		q.window.Clear()
	}
	return &sqs.PurgeQueueOutput{}, nil
}
