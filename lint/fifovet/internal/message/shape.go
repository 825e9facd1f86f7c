package message

import (
	"go/types"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

const (
	sqsV1      = "github.com/aws/aws-sdk-go/service/sqs"
	snsV1      = "github.com/aws/aws-sdk-go/service/sns"
	sqsV2      = "github.com/aws/aws-sdk-go-v2/service/sqs"
	snsV2      = "github.com/aws/aws-sdk-go-v2/service/sns"
	sqsV2Types = sqsV2 + "/types"
	snsV2Types = snsV2 + "/types"
)

// Role is the meaning of a field in a message, such as RoleBody. Fields with different
// names in different types may have the same role.
type Role string

const (
	RoleNone       Role = ""
	RoleBody       Role = "body"
	RoleDedup      Role = "dedup"
	RoleGroup      Role = "group"
	roleAttributes Role = "attributes"
	RoleURL        Role = "url"
	RoleDelay      Role = "delay"
	roleAttribute  Role = "attribute" // value of one attribute; paramSink.Field is the attribute's name
	roleEntries    Role = "entries"
	RoleTime       Role = "time"
	RoleEventID    Role = "event id"
)

// shape describes one struct type, such as sqs.SendMessageInput: the roles of its fields in
// a message.
type shape struct {
	pkgs   []string // import paths of the packages with such a type
	name   string
	Fields map[string]Role
	Sdk    bool // the type belongs to package sqsfifo, which sends only to FIFO queues
	Batch  bool // the type is the input of a batch call; each of its entries is a message
	entry  bool // the type is an entry of a batch input
}

var (
	sqsInput = map[string]Role{
		"QueueUrl": RoleURL, "MessageBody": RoleBody, "MessageDeduplicationId": RoleDedup, "MessageGroupId": RoleGroup,
		"MessageAttributes": roleAttributes, "DelaySeconds": RoleDelay,
	}
	snsInput = map[string]Role{
		"TopicArn": RoleURL, "TargetArn": RoleURL, "Message": RoleBody, "MessageDeduplicationId": RoleDedup, "MessageGroupId": RoleGroup,
		"MessageAttributes": roleAttributes,
	}
	sqsBatch = map[string]Role{"QueueUrl": RoleURL, "Entries": roleEntries}
	snsBatch = map[string]Role{"TopicArn": RoleURL, "PublishBatchRequestEntries": roleEntries}
)

var Shapes = []*shape{
	{pkgs: []string{sqsV2, sqsV1}, name: "SendMessageInput", Fields: sqsInput},
	{pkgs: []string{sqsV2, sqsV1}, name: "SendMessageBatchInput", Fields: sqsBatch, Batch: true},
	{pkgs: []string{sqsV2Types, sqsV1}, name: "SendMessageBatchRequestEntry", Fields: sqsInput, entry: true},
	{pkgs: []string{snsV2, snsV1}, name: "PublishInput", Fields: snsInput},
	{pkgs: []string{snsV2, snsV1}, name: "PublishBatchInput", Fields: snsBatch, Batch: true},
	{pkgs: []string{snsV2Types, snsV1}, name: "PublishBatchRequestEntry", Fields: snsInput, entry: true},
	{pkgs: []string{flow.SDKPath}, name: "Identity", Sdk: true, Fields: map[string]Role{
		"DedupeKey": RoleDedup, "Group": RoleGroup, "Time": RoleTime, "EventID": RoleEventID,
	}},
	{pkgs: []string{flow.SDKPath}, name: "Message", Sdk: true, Fields: map[string]Role{
		"DedupeKey": RoleDedup, "Group": RoleGroup, "EventID": RoleEventID, "Body": RoleBody, "Attributes": roleAttributes,
	}},
}

// fieldsOf returns the names of the fields with a role, in order.
func (s *shape) fieldsOf(r Role) []string {
	var names []string
	for name, has := range s.Fields {
		if has == r {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ShapeOf returns the shape (the roles of the fields) of a struct, or of a pointer's
// struct. It returns nil for types missing in Shapes.
func ShapeOf(t types.Type) *shape {
	return ShapeNamed(flow.PackagePath(t), flow.TypeName(t))
}

// ShapeNamed returns the element of Shapes with this package path and type name, or nil.
func ShapeNamed(path, name string) *shape {
	for _, s := range Shapes {
		if s.name == name && slices.Contains(s.pkgs, path) {
			return s
		}
	}
	return nil
}

// IsReceived reports whether a type of the AWS SDKs describes a received message.
func IsReceived(t types.Type) bool {
	name := flow.TypeName(t)
	return (name == "Message" || name == "SQSMessage") && strings.HasPrefix(flow.PackagePath(t), "github.com/aws/")
}

// IsMessaging reports whether a package declares a type for messages, such as
// SendMessageInput (see Shapes).
func IsMessaging(path string) bool {
	return slices.ContainsFunc(Shapes, func(s *shape) bool { return slices.Contains(s.pkgs, path) })
}

// IsSDKModule reports whether the package belongs to this module. Sends in this module
// are exempt from the rules.
func IsSDKModule(path string) bool {
	return path == flow.SDKPath || strings.HasPrefix(path, flow.SDKPath+"/")
}
