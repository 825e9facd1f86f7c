// Package fifovet finds, in Go source, what makes SQS FIFO queues lose or
// duplicate events.
package fifovet
