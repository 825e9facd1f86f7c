package message

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// sendNames are the names of the sending calls on AWS's clients and on interfaces with the
// same methods.
var sendNames = []string{
	"SendMessage", "SendMessageWithContext", "SendMessageRequest", "SendMessageBatch", "SendMessageBatchWithContext", "SendMessageBatchRequest",
	"Publish", "PublishWithContext", "PublishRequest", "PublishBatch", "PublishBatchWithContext",
}

func IsSend(obj *types.Func) bool {
	if !slices.Contains(sendNames, obj.Name()) {
		return false
	}
	for v := range obj.Signature().Params().Variables() {
		if ShapeOf(v.Type()) != nil {
			return true
		}
	}
	return false
}

// isField reports whether an address is a field of a message. The SDKs never write through
// the pointers in these fields.
func isField(addr *ssa.FieldAddr) bool {
	s := ShapeOf(addr.X.Type())
	return s != nil && s.Fields[flow.FieldName(addr.X.Type(), addr.Field)] != RoleNone
}
