package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// queueEntry is one queue in the file that the flag --queues names.
type queueEntry struct {
	Name       string            `json:"name"`
	Attributes map[string]string `json:"attributes"` // attributes for CreateQueue; FifoQueue is set for a name that ends in .fifo
}

// createQueues creates the queues listed in a file, from top to bottom. A dead-letter
// queue must therefore be listed before the queue that uses it. If `file` is "",
// createQueues creates none.
func createQueues(ctx context.Context, server *sqstest.Server, file string) ([]*sqstest.Queue, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var entries []queueEntry
	if err := d.Decode(&entries); err != nil {
		return nil, fmt.Errorf("--queues %s: %w", file, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("--queues %s: more than one value", file)
	}
	var out []*sqstest.Queue
	for i, e := range entries {
		attributes := map[string]string{}
		if strings.HasSuffix(e.Name, ".fifo") {
			attributes["FifoQueue"] = "true"
			attributes["ContentBasedDeduplication"] = "true" // the same default as for queues of --queue
		}
		for name, value := range e.Attributes {
			attributes[name] = value
		}
		if _, err := server.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &e.Name, Attributes: attributes}); err != nil {
			return nil, fmt.Errorf("--queues %s: queue %d, %q: %w", file, i+1, e.Name, err)
		}
		out = append(out, server.Queue(e.Name))
	}
	return out, nil
}
