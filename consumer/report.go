package consumer

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
)

// Report has the attributes of a queue that matter to a consumer, and warnings.
type Report struct {
	FIFO bool

	// DeadLetterQueue is the ARN in the queue's redrive policy, and MaxReceiveCount is the
	// maxReceiveCount of the policy. Without a redrive policy DeadLetterQueue is empty.
	DeadLetterQueue string
	MaxReceiveCount int

	// Visible, InFlight and Delayed are SQS's approximate numbers of messages.
	Visible, InFlight, Delayed int

	Retention time.Duration

	// Notes are warnings, in sentences for people.
	Notes []string

	arn      string
	maxBytes int
}

// reachable returns a [*QueueError] if the client's settings cannot reach a queue, for
// example because the queue is in another region. It makes no request.
func (e *engine) reachable(queueURL string) error {
	if mistake := sqscall.Misconfigured(e.client, queueURL); queueURL != "" && mistake != "" {
		return &QueueError{queueURL, []string{mistake}}
	}
	return nil
}

func (e *engine) attributesOf(ctx context.Context, queueURL string) (map[string]string, error) {
	if err := e.reachable(queueURL); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := called(e.client.GetQueueAttributes, ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &queueURL, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		return nil, fmt.Errorf("consumer: read the attributes of queue %s: %w", queueURL, err)
	}
	return out.Attributes, nil
}

func reportOf(attributes map[string]string) Report {
	number := func(name types.QueueAttributeName) int {
		n, _ := strconv.Atoi(attributes[string(name)]) // absent is 0
		return n
	}
	r := Report{
		FIFO:      attributes[string(types.QueueAttributeNameFifoQueue)] == "true",
		Visible:   number(types.QueueAttributeNameApproximateNumberOfMessages),
		InFlight:  number(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible),
		Delayed:   number(types.QueueAttributeNameApproximateNumberOfMessagesDelayed),
		Retention: time.Duration(number(types.QueueAttributeNameMessageRetentionPeriod)) * time.Second,
		arn:       attributes[string(types.QueueAttributeNameQueueArn)],
		maxBytes:  number(types.QueueAttributeNameMaximumMessageSize),
	}
	var redrive struct {
		Target string          `json:"deadLetterTargetArn"`
		Count  json.RawMessage `json:"maxReceiveCount"` // a number or a string
	}
	if json.Unmarshal([]byte(attributes[string(types.QueueAttributeNameRedrivePolicy)]), &redrive) == nil {
		r.DeadLetterQueue = redrive.Target
		r.MaxReceiveCount, _ = strconv.Atoi(strings.Trim(string(redrive.Count), `"`)) // #nosec G104 -- SQS checks it
	}
	return r
}
