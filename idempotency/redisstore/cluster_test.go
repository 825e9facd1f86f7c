package redisstore_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/redisstore"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest"
)

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// newCluster starts three primaries with one third of the slots each.
func newCluster(t *testing.T) *redis.ClusterClient {
	t.Helper()
	ctx := context.Background()
	var addrs []string
	var nodes []*redis.Client
	for i := range 3 {
		port, bus := freePort(t), freePort(t)
		s := newServer(t, append(slices.Clone(durable), "--cluster-enabled", "yes", "--port", port, "--cluster-port", bus, "--bind", "127.0.0.1")...)
		node := s.client()
		t.Cleanup(func() { node.Close() })
		nodes, addrs = append(nodes, node), append(addrs, "127.0.0.1:"+port)
		if err := node.ClusterAddSlotsRange(ctx, i*16384/3, (i+1)*16384/3-1).Err(); err != nil {
			t.Fatal(err)
		}
		if err := node.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			t.Fatal(err)
		}
		if err := nodes[0].Do(ctx, "CLUSTER", "MEET", "127.0.0.1", port, bus).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		up := 0
		for _, node := range nodes {
			info := node.ClusterInfo(ctx).Val()
			if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3") {
				up++
			}
		}
		if up == len(nodes) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the cluster does not form")
		}
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	t.Cleanup(func() { c.Close() })
	return c
}

func TestCluster(t *testing.T) {
	client := newCluster(t)
	storetest.Run(t, func(*testing.T) storetest.Storage {
		prefix := newPrefix()
		return storetest.Storage{Open: func() (idempotency.Store, error) {
			return redisstore.Open(context.Background(), redisstore.Config{Client: client, Prefix: prefix})
		}}
	})

	// Each primary must get records, fences must be unique, and Open must refuse a weak
	// setting of one primary.
	s, err := redisstore.Open(t.Context(), redisstore.Config{Client: client})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fences := map[int64]bool{}
	for i := range 20 {
		var batch []idempotency.Claim
		for j := range idempotency.MaxBatch {
			c := claimOf(fmt.Sprintf("%d-%d", i, j))
			// Braces in a Redis key choose its cluster slot, so the store must escape the
			// braces of an operation.
			c.Key.Operation = "a{b}c%"
			batch = append(batch, c)
		}
		outs, err := s.ClaimBatch(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		for _, out := range outs {
			if fences[out.Record.Fence] {
				t.Errorf("fence %d was given twice", out.Record.Fence)
			}
			fences[out.Record.Fence] = true
		}
	}
	n := 0
	for _, err := range s.Scan(t.Context(), idempotency.Filter{Operation: "a{b}c%"}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != len(fences) || n != 20*idempotency.MaxBatch {
		t.Errorf("a scan found %d of %d records", n, len(fences))
	}
	var node *redis.Client
	err = client.ForEachMaster(t.Context(), func(ctx context.Context, c *redis.Client) error {
		keys, err := c.Keys(ctx, "idempotency:a%7Bb%7Dc%25:{*").Result()
		if len(keys) < n/6 {
			t.Errorf("a primary has %d of %d records", len(keys), n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if node, err = client.MasterForKey(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if err := node.ConfigSet(t.Context(), "appendfsync", "no").Err(); err != nil {
		t.Fatal(err)
	}
	refused(t, redisstore.Config{Client: client}, "appendfsync", "no")

	// Behind a client of one server, the store detects the cluster with any prefix. With this
	// prefix, the names of the clock record and of a fence are in one slot.
	plain := redis.NewClient(&redis.Options{Addr: client.Options().Addrs[0]})
	defer plain.Close()
	behind, err := redisstore.Open(t.Context(), redisstore.Config{Client: plain, Prefix: "p6246:", AllowLoss: true})
	if err != nil {
		t.Fatal(err)
	}
	defer behind.Close()
	if !redisstore.WatchesBuckets(behind) {
		t.Error("the store has not detected the cluster")
	}
}
