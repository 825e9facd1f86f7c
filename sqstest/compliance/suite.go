// Package compliance is the test suite that the KFM message contract asks of each
// producer of a FIFO queue, whether it uses this module or not.
//
// Problem: a producer that breaks the contract gets success from SQS, and its events
// are lost or delivered twice. Nobody sees it in a review.
//
// Guarantee: [TestProducer] sends the producer's own events to a fake queue (package
// sqstest) and judges what arrived, one case for each rule. A producer with one defect
// fails one case, and the failure names the rule, its source and the first byte that
// differs. [CheckProducer] is the same for tools.
//
// Limits: the suite sees what the given events show. It cannot judge the order in a
// message group if no two of the events share one.
package compliance

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Suite is what the compliance suite needs of a producer of events of type T.
// Send and Events are required.
type Suite[T any] struct {
	// Send sends one event through the client to the queue, as a process that has
	// just started would: it creates the producer, sends, closes it and returns
	// its error. For a producer of this module that is
	//
	//	producer, err := newProducer(client, queueURL) // the team's own constructor
	//	if err != nil {
	//		return err
	//	}
	//	defer producer.Close(ctx)
	//	_, err = producer.Send(ctx, event)
	//	return err
	//
	// and for any other whatever code puts the event on the wire. It must not
	// need a network: the client reaches the fake queue alone. It is called some
	// hundreds of times.
	Send func(ctx context.Context, client *sqs.Client, queueURL string, event T) error

	// Events are two or more events, no two of which are the same. Take real ones
	// that differ in as little as possible; two of them should share a message
	// group, without which the order in a group cannot be judged.
	Events []T

	// Organization is the first label of event_source. Empty means "kfm".
	Organization string
}

// complianceCase is one row of the suite.
type complianceCase struct {
	name   string
	rule   string
	source string
	judge  func(*evidence) error
}

// The first three are those that the KFM contract requires of each producer, by
// its names.
var complianceCases = []complianceCase{
	{
		"Hash Behavior",
		"changing dedupe_key changes the body and so the hash that SQS deduplicates by",
		"KFM contract v11.2.3, section 8; F-011",
		hashBehavior,
	},
	{
		"Attribute Ignorance",
		"attributes never enter the hash, so they must not be the only difference between two events",
		"KFM contract v11.2.3, sections 3, 5 and 8 (RC-2.4.1); F-012",
		attributeIgnorance,
	},
	{
		"Replay Window Collision",
		"a replay within five minutes has the same body and is suppressed; another event is delivered, and so is a replay after the window",
		"KFM contract v11.2.3, sections 7 and 8; F-019",
		replayWindowCollision,
	},
	{
		"Envelope Contract",
		"the body is the KFM envelope: five members, each of its form",
		"KFM contract v11.2.3, section 4",
		envelopeContract,
	},
	{
		"Canonical Form",
		"the body is RFC 8785 canonical JSON: one event has one spelling",
		"KFM contract v11.2.3, section 4; RFC 8785; F-024",
		canonicalForm,
	},
	{
		"Determinism Over Time",
		"the body is a function of the event: built an hour later it has the same bytes",
		"KFM contract v11.2.3, section 7",
		determinismOverTime,
	},
	{
		"Distinct Events Never Collapse",
		"two events have two bodies",
		"KFM contract v11.2.3, sections 4 and 6",
		distinctEvents,
	},
	{
		"Payload Mismatch",
		"a dedupe key belongs to one event; another payload under the same key is another event with the wrong key",
		"KFM contract v11.2.3, section 7 (no accidental re-use of dedupe keys)",
		payloadMismatch,
	},
	{
		"Timeout After Commit",
		"an event whose answer was lost is sent again with the same body, and SQS keeps one of the two",
		"KFM contract v11.2.3, section 7; F-005, F-009",
		timeoutAfterCommit,
	},
	{
		"Group Order",
		"events of one message group are stored in the order of the calls, also when one of them has to be tried again",
		"F-041, F-061",
		groupOrder,
	},
	{
		"Retry Storm",
		"80 events a second for ten minutes, 6 % of them tried again: of 2,880 duplicate attempts none is accepted",
		"KFM contract v11.2.3, section 7; F-019, F-021",
		retryStorm,
	},
}

// TestProducer runs the compliance suite as subtests, one for each case. It is
// the test that a team writes for its producer:
//
//	func TestCompliance(t *testing.T) {
//		compliance.TestProducer(t, compliance.Suite[Scene]{Send: sendScene, Events: []Scene{a, b}})
//	}
//
// It runs in a separate testing/synctest bubble, so it takes no real time,
// Send must leave no goroutine running, and it cannot be called inside a bubble.
//
// One defect fails one case: what cannot be judged because of a defect that
// another case reports is skipped and says so. A Send that fails, or sends
// anything but one message, fails the test as a whole.
func TestProducer[T any](t *testing.T, s Suite[T]) {
	t.Helper()
	var e *evidence
	var err error
	synctest.Test(t, func(t *testing.T) {
		e, err = s.gather(t.Context(), time.Sleep)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range complianceCases {
		t.Run(c.name, func(t *testing.T) {
			err := c.run(e)
			var masked *notJudgedError
			switch {
			case errors.As(err, &masked):
				t.Skip(err)
			case err != nil:
				t.Error(err)
			}
		})
	}
}

// CheckProducer runs the compliance suite for tools that have no *testing.T. It
// returns nil if each case passes, and otherwise the failures, joined.
//
// It runs in real time, a little over a second: the queue's clock can be moved
// and the producer's cannot. A clock reading in the body therefore shows as a
// body that is never the same (Replay Window Collision), and one that is rounded
// to more than a second does not show. TestProducer sees both.
func CheckProducer[T any](ctx context.Context, s Suite[T]) error {
	e, err := s.gather(ctx, func(time.Duration) {
		select {
		case <-time.After(1100 * time.Millisecond):
		case <-ctx.Done():
		}
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range complianceCases {
		var masked *notJudgedError
		if err := c.run(e); err != nil && !errors.As(err, &masked) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (c *complianceCase) run(e *evidence) error {
	if err := c.judge(e); err != nil {
		return fmt.Errorf("%s: %w\nrule: %s (%s)", c.name, err, c.rule, c.source)
	}
	return nil
}

// notJudgedError is the outcome of a case that another defect hides.
type notJudgedError struct{ because string }

func (e *notJudgedError) Error() string { return "not judged: " + e.because }
