package dynamostore_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/dynamostore"
)

const (
	childEndpoint = "DYNAMOSTORE_TEST_ENDPOINT"
	childTable    = "DYNAMOSTORE_TEST_TABLE"
	childRound    = "DYNAMOSTORE_TEST_ROUND"
)

func newClient(endpoint string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(endpoint),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
}

// The child of the kill test: four callers claim the keys of the round, and complete
// every second one. Each answer of the store is a line on standard output before the
// next call is made.
func TestClaimForTheParentProcess(t *testing.T) {
	if os.Getenv(childEndpoint) == "" {
		t.Skip("runs as a child of the kill test")
	}
	ctx := context.Background()
	s, err := dynamostore.Open(ctx, dynamostore.Config{Client: newClient(os.Getenv(childEndpoint)), Table: os.Getenv(childTable)})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("ready")
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				value := fmt.Sprintf("%s-%d", os.Getenv(childRound), i*4+w)
				out, err := s.Claim(ctx, claimOf(value))
				if err != nil {
					return
				}
				fmt.Println(out.Decision, value, out.Record.Fence)
				if i%2 == 0 && out.Decision.Granted() && s.Complete(ctx, out.Ref(), idempotency.Result{Response: []byte(value)}) == nil {
					fmt.Println("completed", value, out.Record.Fence)
				}
			}
		})
	}
	wg.Wait()
}

// Client processes are killed in the middle of their calls, fifty times. What they were
// told is there, and no key was granted to both.
func TestKilledClients(t *testing.T) {
	client, table := newTable(t, "key_id", types.ScalarAttributeTypeS)
	s, err := dynamostore.Open(t.Context(), dynamostore.Config{Client: client, Table: table})
	if err != nil {
		t.Fatal(err)
	}
	rounds, claims, completions := 50, 0, 0
	if testing.Short() {
		rounds = 5
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds {
		var mu sync.Mutex
		granted, completed := map[string]int64{}, map[string]bool{}
		var readers, started sync.WaitGroup
		var children []*exec.Cmd
		for range 2 {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestClaimForTheParentProcess$")
			cmd.Env = append(os.Environ(), childEndpoint+"="+aws.ToString(client.Options().BaseEndpoint), childTable+"="+table, childRound+"="+strconv.Itoa(round))
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			children = append(children, cmd)
			started.Add(1)
			readers.Go(func() {
				ready := sync.OnceFunc(started.Done)
				defer ready()
				for r := bufio.NewReader(out); ; {
					line, err := r.ReadString('\n')
					if err != nil { // a line that was torn was not said
						return
					}
					ready()
					mu.Lock()
					switch fields := append(strings.Fields(line), "", "", ""); fields[0] {
					case "completed":
						completed[fields[1]] = true
					case "new", "renewed", "reclaimed":
						if _, twice := granted[fields[1]]; twice {
							t.Errorf("key %s was granted twice", fields[1])
						}
						granted[fields[1]], _ = strconv.ParseInt(fields[2], 10, 64)
					}
					mu.Unlock()
				}
			})
		}
		started.Wait()
		time.Sleep(time.Duration(30+rng.IntN(100)) * time.Millisecond)
		for _, cmd := range children {
			_ = cmd.Process.Kill()
		}
		readers.Wait()
		for _, cmd := range children {
			_ = cmd.Wait()
		}
		for value, fence := range granted {
			records, err := s.Lookup(t.Context(), claimOf(value).Key)
			if err != nil {
				t.Fatal(err)
			}
			// A completion that was made and not acknowledged is there too.
			if r := records[0]; r.Fence != fence || r.Status != idempotency.Succeeded && (completed[value] || r.Status != idempotency.Running) {
				t.Errorf("key %s was granted with fence %d, completed: %v; the record is %v with fence %d", value, fence, completed[value], r.Status, r.Fence)
			}
		}
		claims, completions = claims+len(granted), completions+len(completed)
	}
	t.Logf("seed %d: %d rounds, %d claims and %d completions acknowledged", seed, rounds, claims, completions)
	if claims == 0 || completions == 0 {
		t.Error("no child got anything done")
	}
}
