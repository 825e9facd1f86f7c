package message

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// sendNames are the names of the sending calls on AWS's clients and on interfaces with the
// same methods, without the endings WithContext and Request of the AWS SDK v1.
var sendNames = []string{"SendMessage", "SendMessageBatch", "Publish", "PublishBatch"}

func IsSend(obj *types.Func) bool {
	name := strings.TrimSuffix(strings.TrimSuffix(obj.Name(), "WithContext"), "Request")
	return slices.Contains(sendNames, name) && flow.Any(obj.Signature().Params().Variables(), func(v *types.Var) bool { return ShapeOf(v.Type()) != nil })
}

// isField reports whether an address is a field of a message. The SDKs never write through
// the pointers in these fields.
func isField(addr *ssa.FieldAddr) bool {
	s := ShapeOf(addr.X.Type())
	return s != nil && s.Fields[flow.FieldName(addr.X.Type(), addr.Field)] != RoleNone
}
