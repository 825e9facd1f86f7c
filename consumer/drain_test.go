package consumer

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A batch drops its messages when the time of the shutdown is over. The ShutdownError names
// its group even if the batch gets e.mu first. The test runs on real time, because virtual
// time stands still while a goroutine waits for a mutex.
func TestDrainNamesEndingGroup(t *testing.T) {
	e := newEngine(settings{stop: 50 * time.Millisecond}, nil, nil, nil, nil)
	e.base = context.Background()
	b, it := e.newBatch("a", 1), newItem(types.Message{}, 1, time.Minute)
	b.items, it.batch = []*item{it}, b
	e.batches[b] = struct{}{}
	result := make(chan error, 1)
	go func() { result <- e.drain() }()
	<-b.ctx.Done() // four fifths of the time have passed
	e.mu.Lock()
	select {
	case <-e.dead:
		e.drop(it)
	case <-time.After(100 * time.Millisecond): // drain waits for e.mu
	}
	e.mu.Unlock()
	var incomplete *ShutdownError
	require.ErrorAs(t, <-result, &incomplete)
	assert.Equal(t, []string{"a"}, incomplete.Unreleased)
}
