package sqsfifo

import (
	"context"
	"errors"

	"github.com/aws/smithy-go/middleware"
)

// journey is how far a request came. What fails before the SDK hands the request
// to its HTTP client, such as the search for credentials, leaves no doubt about
// the message. A client that is not the SDK's tells nothing, and a request of which
// nothing is known may have left.
type journey struct {
	began bool // in the SDK
	left  bool // for the HTTP client
}

type journeyKey struct{}

func (j *journey) watch(ctx context.Context) context.Context {
	return context.WithValue(ctx, journeyKey{}, j)
}

// neverLeft reports whether a request that failed was surely not sent.
func (j *journey) neverLeft() bool { return j.began && !j.left }

// noteJourney is among the SDK's middleware of each call.
func noteJourney(stack *middleware.Stack) error {
	return errors.Join(stack.Initialize.Add(noteBegan, middleware.Before), stack.Deserialize.Add(noteLeft, middleware.After))
}

var (
	noteBegan = middleware.InitializeMiddlewareFunc("sqsfifo:began",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			if j, ok := ctx.Value(journeyKey{}).(*journey); ok {
				j.began = true
			}
			return next.HandleInitialize(ctx, in)
		})
	noteLeft = middleware.DeserializeMiddlewareFunc("sqsfifo:left",
		func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			if j, ok := ctx.Value(journeyKey{}).(*journey); ok {
				j.left = true
			}
			return next.HandleDeserialize(ctx, in)
		})
)
