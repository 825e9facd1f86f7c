package digest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
)

// A digest matches the body from which it was computed and no other body. Tests of
// package sqstest compare digests of attributes with recorded answers of AWS.
func TestSum(t *testing.T) {
	for _, body := range []string{"", "hello", "{\"a\":1}"} {
		assert.True(t, digest.Of(body).Is(digest.Body(body)), body)
		assert.False(t, digest.Of(body+" ").Is(digest.Body(body)), body)
		assert.False(t, digest.Of(body).Is(""), body)
	}
	assert.Zero(t, testing.AllocsPerRun(10, func() { digest.Of("hello").Is("5d41402abc4b2a76b9719d911017c592") }))
}
