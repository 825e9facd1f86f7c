// Package compliance is the test suite that the message contract of KFM (Kansas Frontier
// Matrix) requires of each producer of a FIFO queue. The producer need not use this module.
//
// Problem: a producer that breaks the contract gets success from SQS, and its events are
// lost or delivered twice. Reviews miss such defects.
//
// Guarantee: [TestProducer] sends the producer's own events to a fake queue (package
// sqstest) and judges the messages in the queue, one case for each rule. A producer with
// one defect fails one case, and the failure names the rule, its source and the first
// different byte. Programs call [CheckProducer], which needs no testing.T.
//
// Limits: the suite sees only the given events. It judges the order in a message group
// only if two of the events share a group.
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

// Suite describes a producer of events of type T to the compliance suite. Send and
// Events are required.
type Suite[T any] struct {
	// Send sends one event through the client to the queue, like a newly started process:
	// it creates a producer, sends the event and closes the producer. Send returns the
	// producer's error. For a producer of this module:
	//
	//	producer, err := newProducer(client, queueURL) // the team's own constructor
	//	if err != nil {
	//		return err
	//	}
	//	defer producer.Close(ctx)
	//	_, err = producer.Send(ctx, event)
	//	return err
	//
	// For another producer, Send runs the producer's own code. This code must not need
	// another service, because the client reaches only the fake queue.
	//
	// The suite calls Send some hundreds of times.
	Send func(ctx context.Context, client *sqs.Client, queueURL string, event T) error

	// Events are two or more different events. Use real events with the smallest possible
	// differences. Let two events share a message group: the suite judges the order only
	// within a group.
	Events []T

	// Organization is the first label of event_source. Empty means that of the first
	// message: all messages of a producer have one organization.
	Organization string
}

// complianceCase is one row of the suite.
type complianceCase struct {
	name   string
	rule   string
	source string
	judge  func(*evidence) error
}

// The KFM contract requires that each producer passes the first three cases. These cases
// have the contract's names.
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

// TestProducer runs the compliance suite as subtests, one for each case. A team writes one
// test for its producer:
//
//	func TestCompliance(t *testing.T) {
//		compliance.TestProducer(t, compliance.Suite[Scene]{Send: sendScene, Events: []Scene{a, b}})
//	}
//
// TestProducer takes no real time: it runs in a testing/synctest bubble. Send must
// therefore leave no goroutine running, and TestProducer cannot be called inside a bubble.
//
// One defect of the producer fails one case. If the defect prevents the judgement of
// another case, that case is skipped with the reason.
//
// The test as a whole fails if the Suite is invalid, if Send fails, or if Send sends more or
// less than one message.
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

// Result is the outcome of one case of the suite.
type Result struct {
	Case   string // such as "Hash Behavior"
	Rule   string // the rule of the case, in one sentence
	Source string // the origin of the rule

	// Err is the failure; nil if the case passed or was not judged.
	Err error

	// NotJudged says why the suite could not judge the case, or is "". For example, a defect
	// found by another case hides the result, or no two Events share a message group.
	NotJudged string
}

// Results runs the compliance suite for tools without a *testing.T. It returns one result
// for each case, in the order of the suite. The error means that the suite could not run:
// the Suite is invalid, or Send failed, or Send sent more or less than one message.
//
// Results runs in real time, a few seconds, and cannot move the producer's clock.
// So if the body contains the current time, Results is less exact than [TestProducer]:
//
//   - The case "Replay Window Collision" needs two sends at the same instant. If the time in
//     the body is not rounded, this case fails, and "Determinism Over Time" is not judged.
//   - A time rounded to more than a second may stay unnoticed.
func Results[T any](ctx context.Context, s Suite[T]) ([]Result, error) {
	e, err := s.gather(ctx, func(time.Duration) {
		select {
		case <-time.After(1100 * time.Millisecond):
		case <-ctx.Done():
		}
	})
	if err != nil {
		return nil, err
	}
	var results []Result
	for _, c := range complianceCases {
		r := Result{Case: c.name, Rule: c.rule, Source: c.source, Err: c.run(e)}
		var masked *notJudgedError
		if errors.As(r.Err, &masked) {
			r.Err, r.NotJudged = nil, masked.because
		}
		results = append(results, r)
	}
	return results, nil
}

// CheckProducer runs the suite as [Results] does. It returns nil if no case fails, and
// otherwise the joined failures or the error of Results.
func CheckProducer[T any](ctx context.Context, s Suite[T]) error {
	results, err := Results(ctx, s)
	errs := []error{err}
	for _, r := range results {
		errs = append(errs, r.Err)
	}
	return errors.Join(errs...)
}

func (c *complianceCase) run(e *evidence) error {
	if err := c.judge(e); err != nil {
		return fmt.Errorf("%s: %w\nrule: %s (%s)", c.name, err, c.rule, c.source)
	}
	return nil
}

// notJudgedError is the result of a case that could not be judged; see
// [Result.NotJudged].
type notJudgedError struct{ because string }

func (e *notJudgedError) Error() string { return "not judged: " + e.because }
