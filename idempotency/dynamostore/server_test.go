package dynamostore_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// dynalite is an imitation of DynamoDB from npm. The tests install and start it once.
// DYNAMOSTORE_DYNALITE may name a directory with an existing installation.
var dynalite = sync.OnceValues(func() (client *dynamodb.Client, reason string) {
	if testing.Short() {
		return nil, "starts a server of Node"
	}
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, "no " + tool + " on this machine"
		}
	}
	dir := os.Getenv("DYNAMOSTORE_DYNALITE")
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "dynamostore"); err != nil {
			return nil, err.Error()
		}
		cleanups = append(cleanups, func() { os.RemoveAll(dir) })
		for _, name := range []string{"package.json", "package-lock.json"} {
			content, err := os.ReadFile(filepath.Join("testdata", "dynalite", name))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), content, 0o600)
			}
			if err != nil {
				return nil, err.Error()
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		install := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund")
		install.Dir = dir
		if out, err := install.CombinedOutput(); err != nil {
			return nil, fmt.Sprintf("npm does not install dynalite: %v: %.300s", err, out)
		}
	}
	script, err := filepath.Abs(filepath.Join("testdata", "dynalite", "keep-running.cjs"))
	if err != nil {
		return nil, err.Error()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err.Error()
	}
	addr := l.Addr().(*net.TCPAddr)
	l.Close()
	cmd := exec.Command("node", "--require", script, filepath.Join(dir, "node_modules", "dynalite", "cli.js"), "--host", "127.0.0.1", "--port", fmt.Sprint(addr.Port), "--createTableMs", "0", "--deleteTableMs", "0")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err.Error()
	}
	cleanups = append([]func(){func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }}, cleanups...)
	client = newClient("http://" + addr.String())
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr.String()); err == nil {
			c.Close()
			return client, ""
		}
		if time.Now().After(deadline) {
			return nil, "dynalite does not answer"
		}
	}
})

var cleanups []func()

func TestMain(m *testing.M) {
	code := m.Run()
	for _, f := range cleanups {
		f()
	}
	os.Exit(code)
}

var tables atomic.Int64

// newTable creates a table with the given partition key, or skips the test.
func newTable(t testing.TB, key string, keyType types.ScalarAttributeType) (*dynamodb.Client, string) {
	t.Helper()
	client, reason := dynalite()
	if client == nil {
		t.Skip(reason)
	}
	name := fmt.Sprintf("keys-%d", tables.Add(1))
	_, err := client.CreateTable(context.Background(), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &key, AttributeType: keyType}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: &key, KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	waiter := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Millisecond, 10*time.Millisecond
	})
	if err := waiter.Wait(context.Background(), &dynamodb.DescribeTableInput{TableName: &name}, time.Minute); err != nil {
		t.Fatal(err)
	}
	return client, name
}
