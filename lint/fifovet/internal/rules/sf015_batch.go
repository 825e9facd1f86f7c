package rules

import (
	"fmt"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// batchNames are the batch calls of the AWS SDKs. If SQS refuses some entries of a batch,
// the call returns no error. Only its output lists these entries.
var batchNames = []string{"SendMessageBatch", "PublishBatch", "DeleteMessageBatch"}

// unreadFailures checks rule SF015. It reports a batch call if no code reads the entries
// that SQS refused. Batch calls for standard queues count too, because they lose entries
// in the same way.
func (p *audit) unreadFailures() {
	for _, fn := range p.Fns {
		for instr := range flow.Instructions(fn) {
			call, ok := instr.(ssa.CallInstruction)
			if !ok {
				continue
			}
			callee := flow.CalleeOf(call.Common())
			if callee == nil || !isBatch(callee) || readsFailures(call) {
				continue
			}
			p.r.report(finding{
				rule: unreadFailures, fn: fn, pos: call.Pos(),
				text: fmt.Sprintf("%s in %s reports refused entries without an error; read Failed and send these entries again", callee.Name(), flow.Outermost(fn).Name()),
			})
		}
	}
}

// isBatch reports whether a function is the batch call of an AWS client, or of an
// interface with the same method.
func isBatch(obj *types.Func) bool {
	if !slices.Contains(batchNames, strings.TrimSuffix(obj.Name(), "WithContext")) {
		return false
	}
	results := obj.Signature().Results()
	if results.Len() == 0 || !strings.HasPrefix(flow.PackagePath(results.At(0).Type()), "github.com/aws/") {
		return false
	}
	f, _ := flow.FieldOf(results.At(0).Type(), "Failed")
	return f != nil
}

// readsFailures reports whether the code may notice the entries of a batch that SQS
// refused. The code notices them if it reads the list of refused entries, or counts the
// stored entries.
func readsFailures(call ssa.CallInstruction) bool {
	v := call.Value()
	if v == nil {
		return false // a call in a go or defer statement has no result
	}
	for _, instr := range flow.Referrers(v) {
		out, ok := instr.(*ssa.Extract)
		if !ok || out.Index != 0 {
			continue
		}
		for _, use := range flow.Referrers(out) {
			// Code that runs only after an error does not count: if SQS refuses only some
			// entries, the call returns no error.
			if afterError(use, call) {
				continue
			}
			field, ok := use.(*ssa.FieldAddr)
			if !ok {
				return true
			}
			switch flow.FieldName(field.X.Type(), field.Field) {
			case "Failed":
				return true
			case "Successful":
				if usedAsWhole(field) {
					return true
				}
			}
		}
	}
	return false
}

// afterError reports whether an instruction runs only after a call that returned an error.
func afterError(instr ssa.Instruction, call ssa.CallInstruction) bool {
	for _, b := range call.Parent().Blocks {
		if failed, _, ok := flow.Branches(b, call); ok && len(failed.Preds) == 1 && failed.Dominates(instr.Block()) {
			return true
		}
	}
	return false
}

// usedAsWhole reports whether the code passes a slice to a function, compares its length
// outside of a loop, where it is not the loop's end, or uses it in any way other than
// reading elements.
func usedAsWhole(field *ssa.FieldAddr) bool {
	for _, load := range flow.Loads(field) {
		for _, use := range flow.Referrers(load) {
			switch use := use.(type) {
			case *ssa.Range, *ssa.IndexAddr:
			case *ssa.Call:
				if _, ok := use.Call.Value.(*ssa.Builtin); !ok {
					return true
				}
				for _, of := range flow.Referrers(use) {
					if b, ok := of.(*ssa.BinOp); ok && !flow.Cycle(b.Block())[b.Block()] {
						return true
					}
				}
			default:
				return true
			}
		}
	}
	return false
}
