package sqsfifo

import (
	"context"
	"slices"
	"sync"
)

// groupLocks lets one call at a time send to a message group. SQS does not
// order two requests that are under way at once.
type groupLocks struct {
	mu   sync.Mutex
	held map[string]*groupLock
}

type groupLock struct {
	users int
	token chan struct{} // full while held; waiters queue in order
}

// lock takes the locks of the groups or none. They are taken in sorted order,
// so that two calls never wait for each other.
func (g *groupLocks) lock(ctx context.Context, groups []string) (unlock func(), err error) {
	slices.Sort(groups)
	var taken []string
	release := func() {
		for _, name := range taken {
			g.release(name, true)
		}
	}
	for _, name := range groups {
		l := g.acquire(name)
		select {
		case l.token <- struct{}{}:
			taken = append(taken, name)
		case <-ctx.Done():
			g.release(name, false)
			release()
			return nil, context.Cause(ctx)
		}
	}
	return release, nil
}

func (g *groupLocks) acquire(name string) *groupLock {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.held[name]
	if l == nil {
		l = &groupLock{token: make(chan struct{}, 1)}
		g.held[name] = l
	}
	l.users++
	return l
}

func (g *groupLocks) release(name string, taken bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.held[name]
	if taken {
		<-l.token
	}
	if l.users--; l.users == 0 {
		delete(g.held, name)
	}
}
