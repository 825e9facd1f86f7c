package sqscall

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// SetTimeout replaces Timeout for c.
func (c *Caller) SetTimeout(d time.Duration) { c.timeout = d }

// Classes maps SQS's error codes to their classes.
var Classes = classes

const (
	Throttle = throttle
	Access   = access
	Apart    = apart
	Skew     = skew
	Service  = service
	Unknown  = unknown
)

var Classify = classify

// Learned returns the time of the SDK's request from which the next request of one entry is
// made, or of several entries. It is zero if the SDK makes the next request.
func (c *Caller) Learned() (at time.Time) {
	if c.lean != nil {
		for _, p := range []*pattern{c.lean.single.Load(), c.lean.batch.Load()} {
			if p != nil {
				return p.learned
			}
		}
	}
	return at
}

// IsLean reports whether Learned returns a time.
func (c *Caller) IsLean() bool { return !c.Learned().IsZero() }

// Learn lets the SDK make a request of each operation, without a network and with any answer,
// so that the next requests of c are made without the SDK's middleware.
func (c *Caller) Learn() {
	if c.lean == nil {
		return
	}
	defer func() { _ = recover() }() // a panic of the credentials
	text := ""
	for _, known := range []bool{true, false} {
		p, place := &progress{}, &c.lean.batch
		if known {
			place = &c.lean.single
		}
		p.learn = func(r *http.Request, left time.Time) { place.Store(newPattern(r, left)) }
		ctx, o := p.follow(context.Background()), func(o *sqs.Options) { configure(o); o.HTTPClient = anyAnswer{} }
		if known {
			_, _ = c.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &text, MessageBody: &text}, o)
		} else {
			_, _ = c.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &text, Entries: []types.SendMessageBatchRequestEntry{}}, o)
		}
	}
}

type anyAnswer struct{}

func (anyAnswer) Do(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(nil))}, nil
}

// NoteSuspension makes the answered requests younger by d, because the monotonic clock, which
// tells their age, stands still during a suspension.
func (c *Caller) NoteSuspension(d time.Duration) {
	for _, known := range []*atomic.Pointer[pattern]{&c.lean.single, &c.lean.batch} {
		if p := known.Load(); p != nil {
			younger := *p
			younger.learned = p.learned.Add(d)
			known.Store(&younger)
		}
	}
}
