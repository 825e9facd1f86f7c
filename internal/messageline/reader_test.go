package messageline

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// For any size of the buffer, Next returns each line that is not blank with its whole text,
// number and offset.
func TestReader(t *testing.T) {
	long := strings.Repeat("y", 1000)
	text := "a\r\n\n  \n" + long + "\nb"
	for _, size := range []int{16, 64, 4096} {
		for _, from := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
			r := NewReader(from, size)
			for _, want := range []Text{{[]byte("a\r"), 1, 0, true}, {[]byte(long), 4, 7, true}, {[]byte("b"), 5, 1008, false}} {
				got, err := r.Next()
				require.NoError(t, err)
				assert.Equal(t, want, got)
				assert.GreaterOrEqual(t, r.Offset(), got.Offset+int64(len(got.Bytes)))
			}
			assert.EqualValues(t, len(text), r.Offset())
			for range 2 {
				_, err := r.Next()
				require.ErrorIs(t, err, io.EOF)
			}
		}
	}
}

// Next refuses a line over MaxLine without holding it in memory, and returns the lines
// before and after it.
func TestReaderRefusesALongLine(t *testing.T) {
	for _, extra := range []int{0, 1, 1 << 20} {
		text := "a\n" + strings.Repeat("x", MaxLine+extra) + "\nb\n"
		r := NewReader(strings.NewReader(text), 64<<10)
		_, err := r.Next()
		require.NoError(t, err)
		got, err := r.Next()
		assert.Equal(t, 2, got.Number)
		assert.EqualValues(t, 2, got.Offset)
		if extra == 0 {
			require.NoError(t, err)
			assert.Len(t, got.Bytes, MaxLine)
		} else {
			require.ErrorIs(t, err, ErrTooLong)
		}
		got, err = r.Next()
		require.NoError(t, err)
		assert.Equal(t, Text{[]byte("b"), 3, int64(len(text) - 2), true}, got)
		assert.LessOrEqual(t, cap(r.long), 2*MaxLine)
	}
	r := NewReader(strings.NewReader(strings.Repeat("x", MaxLine+1)), 64<<10)
	_, err := r.Next()
	require.ErrorIs(t, err, ErrTooLong, "without an end")
	_, err = r.Next()
	require.ErrorIs(t, err, io.EOF)
}

func TestReaderReturnsErrors(t *testing.T) {
	broken := errors.New("broken")
	r := NewReader(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), 64)
	_, err := r.Next()
	require.NoError(t, err)
	_, err = r.Next()
	require.ErrorIs(t, err, broken)
}
