package sqstest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// toy is a FIFO queue as F-019, F-091 and F-098 say it in words: one list that
// is searched from end to end.
type toy struct {
	messages []*toyMessage
}

type toyMessage struct {
	body, group string
	accepted    time.Time
	visibleAt   time.Time
	receives    int
	deleted     bool
}

func (q *toy) send(body, group string) {
	now := time.Now()
	for _, m := range q.messages {
		if m.body == body && now.Before(m.accepted.Add(5*time.Minute)) {
			return
		}
	}
	q.messages = append(q.messages, &toyMessage{body: body, group: group, accepted: now})
}

func (q *toy) receive(limit int, visibility time.Duration) (taken []*toyMessage) {
	now := time.Now()
	done := map[string]bool{}
	for _, head := range q.messages {
		if head.deleted || done[head.group] {
			continue
		}
		done[head.group] = true
		for _, m := range q.messages {
			if m.group != head.group || m.deleted {
				continue
			}
			if now.Before(m.visibleAt) || len(taken) == limit {
				break
			}
			taken = append(taken, m)
		}
	}
	for _, m := range taken {
		m.receives++
		m.visibleAt = now.Add(visibility)
	}
	return taken
}

func (q *toy) count() (visible, hidden int) {
	for _, m := range q.messages {
		switch {
		case m.deleted:
		case time.Now().Before(m.visibleAt):
			hidden++
		default:
			visible++
		}
	}
	return visible, hidden
}

// The queue's heaps and lists against the toy: random sends, receives, deletes,
// changes of visibility and pauses.
func TestAgainstToyModel(t *testing.T) {
	type held struct {
		got      types.Message
		model    *toyMessage
		receives int
	}
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			d := desk{T: t}
			d.queue = newQueue(t, sqstest.Config{})
			d.client = d.queue
			model := &toy{}
			rng := rand.New(rand.NewPCG(seed, 2))
			var holding []held
			for step := range 600 {
				at := fmt.Sprintf("seed %d step %d", seed, step)
				switch op := rng.IntN(10); {
				case op < 4:
					body, group := fmt.Sprint(rng.IntN(200)), fmt.Sprint("g", rng.IntN(6))
					d.send(msg{body: body, group: group})
					model.send(body, group)
				case op < 6:
					limit, visibility := 1+rng.IntN(10), time.Duration(1+rng.IntN(60))*time.Second
					got := d.receiveWith(sqs.ReceiveMessageInput{MaxNumberOfMessages: int32(limit), VisibilityTimeout: int32(visibility / time.Second)})
					want := model.receive(limit, visibility)
					require.Len(t, got, len(want), at)
					for i, m := range want {
						require.Equal(t, m.body, *got[i].Body, at)
						holding = append(holding, held{got[i], m, m.receives})
					}
				case op < 8 && len(holding) > 0:
					h := holding[rng.IntN(len(holding))]
					current := h.receives == h.model.receives && time.Now().Before(h.model.visibleAt)
					err := d.tryDelete(h.got)
					require.Equal(t, h.model.deleted || current, err == nil, at)
					h.model.deleted = h.model.deleted || current
				case op < 9 && len(holding) > 0:
					h := holding[rng.IntN(len(holding))]
					current := !h.model.deleted && h.receives == h.model.receives && time.Now().Before(h.model.visibleAt)
					extend := rng.IntN(60)
					err := d.tryChange(h.got, int32(extend))
					require.Equal(t, current, err == nil, at)
					if current {
						h.model.visibleAt = time.Now().Add(time.Duration(extend) * time.Second)
					}
				default:
					time.Sleep(time.Duration(rng.IntN(20)) * time.Second)
				}
				visible, hidden := model.count()
				require.Equal(t, fmt.Sprint(visible), d.attribute("ApproximateNumberOfMessages"), at)
				require.Equal(t, fmt.Sprint(hidden), d.attribute("ApproximateNumberOfMessagesNotVisible"), at)
			}
			require.Len(t, d.queue.Messages(), len(model.messages))
		})
	}
}
