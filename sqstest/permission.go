package sqstest

// Deviations from AWS in this file:
//   - The policy is stored and shown, but not enforced.
//   - Only the policy's JSON and two errors (the label exists, or is not found) follow
//     recorded answers of AWS (F-147). Other errors may differ from AWS's.
//   - A statement lists the accounts in the order of the request; AWS has no fixed order.

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// permittedActions are the actions that AWS documents for a statement of AddPermission.
var permittedActions = []string{
	"*", "SendMessage", "ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueAttributes", "GetQueueUrl",
}

// AddPermission adds a statement to the queue's Policy under the label (F-147). The
// fake does not enforce the policy.
func (q *Queue) AddPermission(ctx context.Context, in *sqs.AddPermissionInput, _ ...func(*sqs.Options)) (*sqs.AddPermissionOutput, error) {
	return inProcess(ctx, "AddPermission", in, q.addPermission)
}

// RemovePermission removes the statement with the label from the queue's Policy
// (F-147).
func (q *Queue) RemovePermission(ctx context.Context, in *sqs.RemovePermissionInput, _ ...func(*sqs.Options)) (*sqs.RemovePermissionOutput, error) {
	return inProcess(ctx, "RemovePermission", in, q.removePermission)
}

// policy has the members of a Policy that AddPermission and RemovePermission use.
// Statements are raw JSON, so statements from SetQueueAttributes stay unchanged.
type policy struct {
	Version   string            `json:"Version"`
	ID        string            `json:"Id,omitempty"`
	Statement []json.RawMessage `json:"Statement"`
}

type statement struct {
	Sid       string    `json:"Sid"`
	Effect    string    `json:"Effect"`
	Principal principal `json:"Principal"`
	Action    oneOrMany `json:"Action"`
	Resource  string    `json:"Resource"`
}

type principal struct {
	AWS oneOrMany `json:"AWS"`
}

// oneOrMany is written to JSON as a string if it has one element, and as a list of
// strings otherwise.
type oneOrMany []string

func (o oneOrMany) MarshalJSON() ([]byte, error) {
	if len(o) == 1 {
		return json.Marshal(o[0])
	}
	return json.Marshal([]string(o))
}

// labelled returns the index of the statement with the label, or -1.
func (p *policy) labelled(label string) int {
	return slices.IndexFunc(p.Statement, func(raw json.RawMessage) bool {
		var s struct{ Sid string }
		return json.Unmarshal(raw, &s) == nil && s.Sid == label
	})
}

func (q *Queue) addPermission(ctx context.Context, in *sqs.AddPermissionInput) (*sqs.AddPermissionOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	label := aws.ToString(in.Label)
	switch {
	case in.Label == nil:
		return nil, missing("Label")
	case !entryID(label):
		return nil, invalidValue(label, "Label", "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	case len(in.AWSAccountIds) == 0:
		return nil, missing("AWSAccountIds")
	case len(in.Actions) == 0:
		return nil, missing("Actions")
	}
	arn := q.arnIn(callerOf(ctx).region)
	added := statement{Sid: label, Effect: "Allow", Resource: arn}
	for _, id := range in.AWSAccountIds {
		added.Principal.AWS = append(added.Principal.AWS, "arn:aws:iam::"+id+":root")
	}
	for _, action := range in.Actions {
		if !slices.Contains(permittedActions, action) {
			return nil, invalidValue(action, "ActionName", "Please refer to the appropriate WSDL for a list of valid actions.")
		}
		added.Action = append(added.Action, "SQS:"+action)
	}
	return &sqs.AddPermissionOutput{}, q.changePolicy(func(p *policy) error {
		if p.labelled(label) >= 0 {
			return invalidValue(label, "Label", "Already exists.")
		}
		if p.Version == "" {
			p.Version, p.ID = "2008-10-17", arn+"/SQSDefaultPolicy"
		}
		raw, err := encode(added)
		p.Statement = append(p.Statement, raw)
		return err
	})
}

func (q *Queue) removePermission(_ context.Context, in *sqs.RemovePermissionInput) (*sqs.RemovePermissionOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	if in.Label == nil {
		return nil, missing("Label")
	}
	return &sqs.RemovePermissionOutput{}, q.changePolicy(func(p *policy) error {
		at := p.labelled(*in.Label)
		if at < 0 {
			return invalidValue(*in.Label, "Label", "can't find label.")
		}
		p.Statement = slices.Delete(p.Statement, at, at+1)
		return nil
	})
}

// changePolicy calls the function `change` with the queue's Policy and stores the changed
// policy. A policy without statements is removed.
func (q *Queue) changePolicy(change func(*policy) error) error {
	q.settingsMu.Lock()
	defer q.settingsMu.Unlock()
	next := *q.settings.Load()
	var p policy
	if next.policy != "" {
		if err := json.Unmarshal([]byte(next.policy), &p); err != nil {
			return invalidAttributeValue.because("Invalid value for the parameter Policy.")
		}
	}
	if err := change(&p); err != nil {
		return err
	}
	next.policy = ""
	if len(p.Statement) > 0 {
		raw, err := encode(p)
		if err != nil {
			return err
		}
		next.policy = string(raw)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.modified = q.now()
	q.settings.Store(&next)
	return nil
}
