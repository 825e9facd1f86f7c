package sqsfifo

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Messages accepted by isCertainlyValid have no finding, whatever their fields.
func FuzzPlainMessagesBreakNoRule(f *testing.F) {
	f.Add("soil|17", "p32r29", "text", int64(1_607_108_531_194_000_000), []byte(nil), true)
	f.Add("\x00", "two words", "\uffff", int64(-1), []byte("0123456789abcdef"), true)
	f.Add("key", "group", "null", int64(0), []byte{6: 0x70, 8: 0x80, 15: 1}, false)
	f.Add("", "", "\xff", int64(1<<62), []byte{6: 0x40, 8: 0x80, 15: 1}, true)
	f.Fuzz(func(t *testing.T, key, group, text string, ns int64, id []byte, object bool) {
		c := Config[any]{Source: "kfm.a.b", Identify: func(any) (Identity, error) {
			i := Identity{DedupeKey: key, Group: group, Time: time.Unix(0, ns)}
			if len(id) == 16 {
				i.EventID = uuid.UUID(id)
			}
			return i, nil
		}}
		p := &Producer[any]{config: c}
		var event any = text
		if object {
			event = map[string]any{"text": text, text: ns}
		}
		msg, err := p.compose(event)
		if err != nil {
			t.Skip()
		}
		for _, limit := range []int{100, maxMessageBytes} {
			checked := p.rules.lintMessage(msg)
			checked.MaxSize = limit
			found := lint.Check(checked)
			if msg.isCertainlyValid(limit, payloadOf(msg.Body)) {
				require.Empty(t, found)
			}
		}
	})
}
