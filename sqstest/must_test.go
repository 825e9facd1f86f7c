package sqstest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMust(t *testing.T) {
	assert.Equal(t, "events.fifo", Must(NewQueue(Config{})).config.Name)
	assert.PanicsWithError(t, `sqstest: invalid Config.Name: "events": must be letters, digits, hyphens and underscores and end in ".fifo", 80 characters at most`,
		func() { Must(NewQueue(Config{Name: "events"})) })
}
