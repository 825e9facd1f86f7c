package redisstore_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/redisstore"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest"
)

const childSocket = "REDISSTORE_TEST_SOCKET"

func TestClient(t *testing.T) {
	storetest.Client(t, func() (idempotency.Store, error) {
		client := redis.NewClient(&redis.Options{Network: "unix", Addr: os.Getenv(childSocket)})
		return newStore(t, nil, redisstore.Config{Client: client, Prefix: "kill:"}), nil
	})
}

// In fifty rounds (five with -short) client processes are killed during their calls. No
// acknowledged change is lost.
func TestKilledClients(t *testing.T) {
	server := newServer(t, durable...)
	s := newStore(t, server, redisstore.Config{Prefix: "kill:"})
	storetest.KillClients(t, s, storetest.Killing{Test: "TestClient", Env: []string{childSocket + "=" + server.socket()}})
}

// A client process and this process make random calls over few keys, and the client is
// killed. The results are linearizable: some order of all calls explains each result by
// the rules of package idempotency.
func TestKilledClientsHistory(t *testing.T) {
	server := newServer(t, durable...)
	s := newStore(t, server, redisstore.Config{Prefix: "kill:"})
	storetest.KillHistory(t, s, storetest.Killing{Test: "TestClient", Env: []string{childSocket + "=" + server.socket()}})
}

// The server is killed and restarted during a storm of claims. No acknowledged change is
// lost, and no key is granted twice.
func TestKilledServer(t *testing.T) {
	server := newServer(t, durable...)
	const rounds = 10
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	var all storetest.Tally
	for round := range rounds {
		var told storetest.Witness
		client := redis.NewClient(&redis.Options{Network: "unix", Addr: server.socket(), MaxRetries: -1})
		s := newStore(t, server, redisstore.Config{Client: client, Prefix: "kill:"})
		var wg sync.WaitGroup
		for caller := range 16 {
			wg.Go(func() { _ = told.Call(s, strconv.Itoa(round), caller) }) // runs until the server is killed
		}
		time.Sleep(time.Duration(50+rng.IntN(150)) * time.Millisecond)
		server.kill()
		wg.Wait()
		client.Close()
		if err := server.start(); err != nil {
			t.Fatal(err)
		}
		all = all.Add(told.Check(t, newStore(t, server, redisstore.Config{Prefix: "kill:"})))
	}
	t.Logf("seed %d: %d rounds: %v", seed, rounds, all)
	if all.Claims == 0 {
		t.Error("nobody got anything done")
	}
}
