package fifovet

import (
	"go/types"
	"slices"
	"strings"
)

// sdkPath is the import path of this project's SDK. It is recognised by name:
// the analyzer never imports it.
const sdkPath = "github.com/kansas-frontier-matrix/sqsfifo"

const (
	sqsV1      = "github.com/aws/aws-sdk-go/service/sqs"
	snsV1      = "github.com/aws/aws-sdk-go/service/sns"
	sqsV2      = "github.com/aws/aws-sdk-go-v2/service/sqs"
	snsV2      = "github.com/aws/aws-sdk-go-v2/service/sns"
	sqsV2Types = sqsV2 + "/types"
	snsV2Types = snsV2 + "/types"
)

// role is what a field of a message is to SQS, whatever the struct calls it.
type role string

const (
	roleNone       role = ""
	roleBody       role = "body"
	roleDedup      role = "dedup"
	roleGroup      role = "group"
	roleAttributes role = "attributes"
	roleURL        role = "url"
	roleDelay      role = "delay"
	roleAttribute  role = "attribute" // the value of one, whose name is the field
	roleEntries    role = "entries"
	roleTime       role = "time"
	roleEventID    role = "event id"
)

// shape is a struct type that holds a message, or part of one, on its way to a
// queue.
type shape struct {
	pkg, name string
	fields    map[string]role
	sdk       bool // one of ours: always FIFO, and no raw send
	batch     bool // holds entries, which are messages of their own
	entry     bool // is such an entry
}

var (
	sqsInput = map[string]role{
		"QueueUrl": roleURL, "MessageBody": roleBody, "MessageDeduplicationId": roleDedup, "MessageGroupId": roleGroup,
		"MessageAttributes": roleAttributes, "DelaySeconds": roleDelay,
	}
	snsInput = map[string]role{
		"TopicArn": roleURL, "TargetArn": roleURL, "Message": roleBody, "MessageDeduplicationId": roleDedup, "MessageGroupId": roleGroup,
		"MessageAttributes": roleAttributes,
	}
	sqsBatch = map[string]role{"QueueUrl": roleURL, "Entries": roleEntries}
	snsBatch = map[string]role{"TopicArn": roleURL, "PublishBatchRequestEntries": roleEntries}
)

var shapes = []*shape{
	{pkg: sqsV2, name: "SendMessageInput", fields: sqsInput},
	{pkg: sqsV1, name: "SendMessageInput", fields: sqsInput},
	{pkg: sqsV2, name: "SendMessageBatchInput", fields: sqsBatch, batch: true},
	{pkg: sqsV1, name: "SendMessageBatchInput", fields: sqsBatch, batch: true},
	{pkg: sqsV2Types, name: "SendMessageBatchRequestEntry", fields: sqsInput, entry: true},
	{pkg: sqsV1, name: "SendMessageBatchRequestEntry", fields: sqsInput, entry: true},
	{pkg: snsV2, name: "PublishInput", fields: snsInput},
	{pkg: snsV1, name: "PublishInput", fields: snsInput},
	{pkg: snsV2, name: "PublishBatchInput", fields: snsBatch, batch: true},
	{pkg: snsV1, name: "PublishBatchInput", fields: snsBatch, batch: true},
	{pkg: snsV2Types, name: "PublishBatchRequestEntry", fields: snsInput, entry: true},
	{pkg: snsV1, name: "PublishBatchRequestEntry", fields: snsInput, entry: true},
	{pkg: sdkPath, name: "Identity", sdk: true, fields: map[string]role{
		"DedupeKey": roleDedup, "Group": roleGroup, "Time": roleTime, "EventID": roleEventID,
	}},
	{pkg: sdkPath, name: "Message", sdk: true, fields: map[string]role{
		"DedupeKey": roleDedup, "Group": roleGroup, "EventID": roleEventID, "Body": roleBody, "Attributes": roleAttributes,
	}},
}

// fieldsOf returns the names of the fields that have a role, in order.
func (s *shape) fieldsOf(r role) []string {
	var names []string
	for name, has := range s.fields {
		if has == r {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// shapeOf returns the shape of a struct type or of a pointer to one, nil if the
// type is no message.
func shapeOf(t types.Type) *shape {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || n.Obj().Pkg() == nil {
		return nil
	}
	path, name := n.Obj().Pkg().Path(), n.Obj().Name()
	for _, s := range shapes {
		if s.name == name && s.pkg == path {
			return s
		}
	}
	return nil
}

// isMessaging reports whether the package at path has shapes.
func isMessaging(path string) bool {
	switch path {
	case sqsV1, snsV1, sqsV2, snsV2, sqsV2Types, snsV2Types, sdkPath:
		return true
	}
	return false
}

// isSDKModule reports whether the package belongs to this project, whose own
// sends are what others are told to use.
func isSDKModule(path string) bool {
	return path == sdkPath || strings.HasPrefix(path, sdkPath+"/")
}
