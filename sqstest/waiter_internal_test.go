package sqstest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// If 2000 polls wait in line, a change of the queue wakes only the first of them.
func TestOnlyTheFirstPollIsWoken(t *testing.T) {
	var line waiters
	polls := make([]*waiter, 2000)
	for i := range polls {
		polls[i] = newWaiter()
		assert.Equal(t, i == 0, line.join(polls[i]))
	}
	woken := func() (which []int) {
		for i, w := range polls {
			select {
			case <-w.signal:
				which = append(which, i)
			default:
			}
		}
		return which
	}
	line.wake()
	line.wake()
	assert.Equal(t, []int{0}, woken())
	assert.True(t, line.join(polls[0]), "it stays where it is")
	line.leave(polls[1])
	assert.Empty(t, woken())
	line.leave(polls[0])
	assert.Equal(t, []int{2}, woken(), "the next is first and looks")
	line.leave(polls[0])
	assert.Empty(t, woken())
	line.wakeAll()
	assert.Len(t, woken(), 1998)
}
