package textview_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/textview"
)

func TestViews(t *testing.T) {
	for _, text := range []string{"", "a", "long enough to stand on the heap"} {
		b := textview.Bytes(text)
		assert.Equal(t, text, string(b))
		assert.Equal(t, text, textview.String(b))
	}
	assert.Empty(t, textview.String(nil))
	long := []byte("long enough to stand on the heap")
	var text string
	assert.Zero(t, testing.AllocsPerRun(10, func() { text = textview.String(long); long = textview.Bytes(text) }))
}
