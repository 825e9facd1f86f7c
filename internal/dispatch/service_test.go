package dispatch

import (
	"strconv"
	"sync"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// store stores an item in the simulated service. It returns the answer of SQS, with the
// message ID and the sequence number.
func (c *modelSender) store(it *item) attempt.Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.event(it.Key)
	if e.storedItem < 0 {
		c.sequence++
		e.storedItem, e.sequence = it.Message.n, strconv.Itoa(c.sequence)
		c.order[it.Group] = append(c.order[it.Group], it.Message.n)
	}
	return attempt.Answer{Fate: attempt.FateStored, MessageID: it.Key, Sequence: e.sequence}
}

// lose stores an item in the simulated service and returns the answer for a lost
// response: the item is in doubt.
func (c *modelSender) lose(it *item) attempt.Answer {
	c.store(it)
	return lost()
}

func lost() attempt.Answer { return attempt.Answer{Fate: attempt.FateInDoubt, Next: attempt.NextRetry} }

func failed() attempt.Answer {
	return attempt.Answer{Fate: attempt.FateNotStored, Next: attempt.NextRetry}
}

func refused() attempt.Answer {
	return attempt.Answer{Fate: attempt.FateNotStored, Next: attempt.NextFinal}
}

func doubtful() attempt.Answer {
	return attempt.Answer{Fate: attempt.FateInDoubt, Next: attempt.NextFinal, Code: "Lost"}
}

// storeAll is a healthy service: it stores every item.
func (c *modelSender) storeAll(items []*item, answers []attempt.Answer) attempt.Load {
	time.Sleep(5 * time.Millisecond)
	for i, it := range items {
		answers[i] = c.store(it)
	}
	return attempt.LoadPassed
}

// script sets how the service handles requests: the first function handles the first
// request, the second function the second request, and so on. After these requests, the
// service stores all items.
func (c *modelSender) script(requests ...func(items []*item, answers []attempt.Answer)) {
	next := 0
	var mu sync.Mutex
	c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
		mu.Lock()
		i := next
		next++
		mu.Unlock()
		if i >= len(requests) {
			return c.storeAll(items, answers)
		}
		time.Sleep(5 * time.Millisecond)
		requests[i](items, answers)
		return attempt.LoadPassed
	}
}

// answerAll returns an argument for modelSender.script: a function that calls the function
// `answer` for every item of a request.
func answerAll(answer func(*item) attempt.Answer) func([]*item, []attempt.Answer) {
	return func(items []*item, answers []attempt.Answer) {
		for i, it := range items {
			answers[i] = answer(it)
		}
	}
}

// answers returns an argument for modelSender.script: a function that handles a request. It
// calls answer[0] for the first item of the request, answer[1] for the second item, and so
// on.
func answers(answer ...func(*item) attempt.Answer) func([]*item, []attempt.Answer) {
	return func(items []*item, answers []attempt.Answer) {
		for i, it := range items {
			answers[i] = answer[i](it)
		}
	}
}

func lose(*item) attempt.Answer   { return lost() }
func fail(*item) attempt.Answer   { return failed() }
func refuse(*item) attempt.Answer { return refused() }
func doubt(*item) attempt.Answer  { return doubtful() }
