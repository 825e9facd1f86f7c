package terraform

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

const folder = "../../deploy/terraform/"

// attributes has the name that SQS gives to each argument of a queue. The name of the queue
// is not an attribute.
var attributes = map[string]string{
	"fifo_queue": "FifoQueue", "content_based_deduplication": "ContentBasedDeduplication", "deduplication_scope": "DeduplicationScope",
	"fifo_throughput_limit": "FifoThroughputLimit", "message_retention_seconds": "MessageRetentionPeriod",
	"visibility_timeout_seconds": "VisibilityTimeout", "sqs_managed_sse_enabled": "SqsManagedSseEnabled", "kms_master_key_id": "KmsMasterKeyId",
	"kms_data_key_reuse_period_seconds": "KmsDataKeyReusePeriodSeconds", "redrive_policy": "RedrivePolicy",
}

// module has the blocks of the module by their labels, such as "aws_sqs_queue.events".
type module map[string]*hclsyntax.Block

func parse(t *testing.T) module {
	t.Helper()
	files, err := filepath.Glob(folder + "*.tf")
	require.NoError(t, err)
	require.Len(t, files, 5)
	m, parser := module{}, hclparse.NewParser()
	for _, name := range files {
		file, faults := parser.ParseHCLFile(name)
		require.False(t, faults.HasErrors(), faults)
		for _, block := range file.Body.(*hclsyntax.Body).Blocks {
			label := strings.Join(block.Labels, ".")
			switch block.Type {
			case "data", "output":
				label = block.Type + "." + label
			case "variable":
				label = "var." + label
			}
			m[label] = block
		}
	}
	return m
}

// queue creates the queue of a block in the server, with the given variables.
func (m module) queue(t *testing.T, server *sqstest.Server, label string, variables map[string]cty.Value, others map[string]cty.Value) *sqstest.Queue {
	t.Helper()
	scope := &hcl.EvalContext{
		Variables: map[string]cty.Value{"var": cty.ObjectVal(variables), "aws_sqs_queue": cty.ObjectVal(others)},
		Functions: map[string]function.Function{"jsonencode": stdlib.JSONEncodeFunc},
	}
	in := &sqs.CreateQueueInput{Attributes: map[string]string{}}
	for name, attribute := range m[label].Body.Attributes {
		value, faults := attribute.Expr.Value(scope)
		require.False(t, faults.HasErrors(), faults)
		if value.IsNull() {
			continue
		}
		text, err := convert.Convert(value, cty.String)
		require.NoError(t, err)
		if s := text.AsString(); name == "name" {
			in.QueueName = &s
		} else {
			require.Contains(t, attributes, name)
			in.Attributes[attributes[name]] = s
		}
	}
	_, err := server.CreateQueue(t.Context(), in)
	require.NoError(t, err)
	return server.Queue(*in.QueueName)
}

// The queue of the module passes the Preflight of a producer and of a consumer without a
// note, with the encryption of SQS and with a key.
func TestQueueFitsBothSides(t *testing.T) {
	m := parse(t)
	for name, key := range map[string]cty.Value{"SSE-SQS": cty.NullVal(cty.String), "a key": cty.StringVal("arn:aws:kms:us-east-1:000000000000:key/1")} {
		t.Run(name, func(t *testing.T) {
			variables := map[string]cty.Value{"name": cty.StringVal("scenes")}
			for label, block := range m {
				if name, ok := strings.CutPrefix(label, "var."); ok && block.Body.Attributes["default"] != nil {
					value, faults := block.Body.Attributes["default"].Expr.Value(nil)
					require.False(t, faults.HasErrors(), faults)
					variables[name] = value
				}
			}
			variables["kms_key_id"] = key
			server := sqstest.NewServer()
			parking := m.queue(t, server, "aws_sqs_queue.parking", variables, map[string]cty.Value{"none": cty.True})
			others := map[string]cty.Value{"parking": cty.ObjectVal(map[string]cty.Value{"arn": cty.StringVal(parking.ARN())})}
			queue := m.queue(t, server, "aws_sqs_queue.events", variables, others)
			assert.Equal(t, "scenes.fifo", queue.Name())

			type scene struct{ ID string }
			producer, err := sqsfifo.NewQueue(server, sqsfifo.QueueConfig{URL: queue.URL()})
			require.NoError(t, err)
			report, err := producer.Preflight(t.Context())
			require.NoError(t, err)
			assert.Equal(t, key.IsNull(), report.Encryption == sqsfifo.EncryptionSQS)
			assert.Equal(t, "perMessageGroupId", report.FifoThroughputLimit)
			c, err := consumer.New(server, consumer.Config[scene]{
				QueueURL: queue.URL(), Handle: func(context.Context, consumer.Message[scene]) error { return nil },
				Failure: consumer.Failure{Action: consumer.ActionPark, ParkingQueue: parking.URL()},
			})
			require.NoError(t, err)
			received, err := c.Preflight(t.Context())
			require.NoError(t, err)
			assert.Empty(t, received.Notes)
		})
	}
}

// Each reference in the module names a variable, a resource or a data source of the module.
func TestReferencesExist(t *testing.T) {
	m := parse(t)
	local := map[string]bool{"each": true, "count": true, "statement": true}
	found := 0
	for label, block := range m {
		_ = hclsyntax.VisitAll(block, func(node hclsyntax.Node) hcl.Diagnostics {
			traversal, ok := node.(*hclsyntax.ScopeTraversalExpr)
			if !ok || local[traversal.Traversal.RootName()] || label == "" || strings.HasPrefix(label, "var.") && traversal.Traversal.RootName() != "var" {
				return nil
			}
			parts := []string{traversal.Traversal.RootName()}
			for _, step := range traversal.Traversal[1:] {
				if a, ok := step.(hcl.TraverseAttr); ok {
					parts = append(parts, a.Name)
				}
			}
			n := 2
			if parts[0] == "data" {
				n = 3
			}
			if len(parts) >= n && (strings.HasPrefix(parts[0], "aws_") || parts[0] == "var" || parts[0] == "data") {
				found++
				assert.Contains(t, m, strings.Join(parts[:n], "."), "%s", traversal.Range())
			}
			return nil
		})
	}
	assert.Greater(t, found, 20)
}

// The guide shows the queues of main.tf, and policies with the actions of policy.tf.
func TestGuideShowsTheModule(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide/queue.md")
	require.NoError(t, err)
	main, err := os.ReadFile(folder + "main.tf")
	require.NoError(t, err)
	_, queues, found := strings.Cut(string(main), "resource \"aws_sqs_queue\" \"events\"")
	require.True(t, found)
	assert.Contains(t, string(guide), "```hcl\nresource \"aws_sqs_queue\" \"events\""+queues+"```\n", "copy it from main.tf")
	policy, err := os.ReadFile(folder + "policy.tf")
	require.NoError(t, err)
	lists := regexp.MustCompile(`actions +=? *(\[[^]]*\])`).FindAllStringSubmatch(string(policy), -1)
	require.Len(t, lists, 5)
	for _, list := range lists {
		if strings.Contains(list[1], "sqs:") {
			assert.Contains(t, string(guide), `"Action": `+list[1])
		}
	}
}
