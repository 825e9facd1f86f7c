package sqstest

// Deviations from AWS in this file: a purge takes effect immediately; AWS takes up to
// 60 s. Sources disagree about the deduplication IDs after a purge (F-022); see
// Config.PurgeKeepsIDs.

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// purgeInterval is the minimum time between two purges (F-106).
const purgeInterval = time.Minute

// PurgeQueue removes every message, including delayed messages and messages in flight. It
// frees the deduplication IDs unless Config.PurgeKeepsIDs is set.
//
// A second purge within 60 s is refused (F-106), unless Config.NoWaits is set. [Queue.Messages] still returns the removed
// messages, unless Config.DiscardDeleted is set.
func (q *Queue) PurgeQueue(ctx context.Context, in *sqs.PurgeQueueInput, _ ...func(*sqs.Options)) (*sqs.PurgeQueueOutput, error) {
	return inProcess(ctx, "PurgeQueue", in, q.purge)
}

func (q *Queue) purge(_ context.Context, in *sqs.PurgeQueueInput) (*sqs.PurgeQueueOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	if !q.config.NoWaits && !q.purged.IsZero() && now.Before(q.purged.Add(purgeInterval)) {
		return nil, purgeInProgress.because("Only one PurgeQueue operation on %s is allowed every 60 seconds."+waitHint, q.config.Name)
	}
	q.purged = now
	q.delivery.clear()
	if !q.config.PurgeKeepsIDs {
		q.window.Clear()
	}
	return &sqs.PurgeQueueOutput{}, nil
}
