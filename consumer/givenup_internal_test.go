package consumer

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
)

// A message that was received again, and whose batch ends before its turn, keeps the attempts
// and the block of its earlier receive.
func TestAWaitingMessageForgetsNothing(t *testing.T) {
	e, raw, cause := &engine{}, types.Message{MessageId: aws.String("m")}, errors.New("no")
	e.noteGivenUp(&item{raw: raw, wasHead: true, attempts: 4, blocked: cause})
	e.noteGivenUp(&item{raw: raw})
	assert.Equal(t, past{receives: 2, attempts: 4, blocked: cause}, e.givenUp["m"])
}
