package dynamostore_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// tablesOf is DynamoDB in this process, as far as the store uses it. Its conditions are those
// of the store, and nothing else. Unlike dynalite it has transactions.
type tablesOf struct {
	mu     sync.Mutex
	tables map[string]map[string]attributes // by table and key_id
	puts   map[string]int                   // successful puts of each table

	// fault, if not nil, gets each operation. It returns an error of the network before the
	// operation, or after it.
	fault func(operation string) (before, after error)
}

type attributes map[string]map[string]any

type put struct {
	TableName, ConditionExpression string
	Item, Key                      attributes
	ExpressionAttributeValues      attributes
	UpdateExpression               string
}

// newFake returns empty tables and a client for them.
func newFake(tables ...string) (*tablesOf, *dynamodb.Client) {
	f := &tablesOf{tables: map[string]map[string]attributes{}, puts: map[string]int{}}
	for _, name := range tables {
		f.tables[name] = map[string]attributes{}
	}
	return f, dynamodb.New(dynamodb.Options{
		Region: "us-east-1", HTTPClient: f, Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""), RetryMaxAttempts: 1,
		BaseEndpoint: aws.String("http://dynamodb.test"),
	})
}

// Do implements the HTTP client of the SDK.
func (f *tablesOf) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var before, after error
	if f.fault != nil {
		before, after = f.fault(operation)
	}
	if before != nil {
		return nil, before
	}
	status, answer := http.StatusOK, f.answer(operation, body)
	if answer["__type"] != nil {
		status = http.StatusBadRequest
	}
	if after != nil {
		return nil, after
	}
	out, err := json.Marshal(answer)
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(bytes.NewReader(out)), Request: r,
	}, err
}

func (f *tablesOf) answer(operation string, body []byte) map[string]any {
	f.mu.Lock()
	defer f.mu.Unlock()
	var in struct {
		put
		TransactItems []struct{ Put put }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return map[string]any{"__type": "ValidationException", "message": err.Error()}
	}
	failed := map[string]any{"__type": "ConditionalCheckFailedException"}
	switch operation {
	case "DescribeTable":
		if f.tables[in.TableName] == nil {
			return map[string]any{"__type": "ResourceNotFoundException"}
		}
		return map[string]any{"Table": map[string]any{
			"TableStatus": "ACTIVE", "KeySchema": []any{map[string]any{"AttributeName": "key_id", "KeyType": "HASH"}},
			"AttributeDefinitions": []any{map[string]any{"AttributeName": "key_id", "AttributeType": "S"}},
		}}
	case "GetItem":
		return map[string]any{"Item": f.tables[in.TableName][in.Key.id()]}
	case "Scan":
		var all []attributes
		for _, id := range slices.Sorted(maps.Keys(f.tables[in.TableName])) {
			all = append(all, f.tables[in.TableName][id])
		}
		return map[string]any{"Items": all}
	case "PutItem":
		if !f.holds(in.put) {
			return failed
		}
		f.put(in.put)
	case "UpdateItem": // of the counters of fences
		id := in.Key.id()
		had, _ := strconv.ParseInt(f.tables[in.TableName][id].number("last_fence"), 10, 64)
		n, _ := strconv.ParseInt(in.ExpressionAttributeValues.number(":n"), 10, 64)
		if strings.HasPrefix(in.UpdateExpression, "ADD") {
			n += had
		} else if had >= n {
			return failed
		}
		f.tables[in.TableName][id] = attributes{"key_id": {"S": id}, "last_fence": {"N": strconv.FormatInt(n, 10)}}
		return map[string]any{"Attributes": f.tables[in.TableName][id]}
	case "TransactWriteItems":
		reasons, cancelled := []any{}, false
		for _, t := range in.TransactItems {
			code := "None"
			if !f.holds(t.Put) {
				code, cancelled = "ConditionalCheckFailed", true
			}
			reasons = append(reasons, map[string]any{"Code": code})
		}
		if cancelled {
			return map[string]any{"__type": "TransactionCanceledException", "CancellationReasons": reasons}
		}
		for _, t := range in.TransactItems {
			f.put(t.Put)
		}
	default:
		return map[string]any{"__type": "ValidationException", "message": operation}
	}
	return map[string]any{}
}

func (f *tablesOf) holds(p put) bool {
	stored := f.tables[p.TableName][p.Item.id()]
	if p.ConditionExpression == "version_token = :at" {
		return stored != nil && stored["version_token"]["B"] == p.ExpressionAttributeValues[":at"]["B"]
	}
	return stored == nil
}

func (f *tablesOf) put(p put) {
	f.tables[p.TableName][p.Item.id()] = p.Item
	f.puts[p.TableName]++
}

var errNetwork = errors.New("network")

func (a attributes) id() string { s, _ := a["key_id"]["S"].(string); return s }

func (a attributes) number(name string) string { s, _ := a[name]["N"].(string); return s }
