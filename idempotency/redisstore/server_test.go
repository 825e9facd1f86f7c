package redisstore_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/redisstore"
)

// durable lists the settings required by Open.
var durable = []string{"--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"}

// server is a Redis server of the tests, on a socket in its own directory.
type server struct {
	dir      string
	settings []string
	process  *exec.Cmd
	exited   chan struct{}
}

// launch starts a server and waits until it answers.
func launch(settings ...string) (*server, error) {
	dir, err := os.MkdirTemp("", "redisstore")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, settings: settings}
	return s, s.start()
}

func (s *server) socket() string { return filepath.Join(s.dir, "s") }

func (s *server) start() error {
	args := append([]string{"--port", "0", "--unixsocket", s.socket(), "--dir", s.dir, "--save", ""}, s.settings...)
	s.process = exec.Command("redis-server", args...)
	if err := s.process.Start(); err != nil {
		return err
	}
	s.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) {
		_ = cmd.Wait()
		close(exited)
	}(s.process, s.exited)
	c := s.client()
	defer c.Close()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := c.Ping(context.Background()).Err()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the server does not answer: %w", err)
		}
	}
}

func (s *server) client() *redis.Client {
	return redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket(), PoolSize: 32})
}

func (s *server) kill() {
	_ = s.process.Process.Kill()
	<-s.exited
}

// newServer starts a server for one test. It skips the test without redis-server.
func newServer(t testing.TB, settings ...string) *server {
	t.Helper()
	if !haveServer {
		t.Skip(noServer)
	}
	s, err := launch(settings...)
	if s != nil {
		t.Cleanup(func() { s.kill(); os.RemoveAll(s.dir) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const noServer = "needs a redis-server, which -short does not start"

var (
	haveServer bool
	shared     *server // with durable settings, or nil
)

func TestMain(m *testing.M) {
	flag.Parse()
	_, err := exec.LookPath("redis-server")
	haveServer = err == nil && !testing.Short()
	if os.Getenv(childSocket) == "" {
		if haveServer {
			if shared, err = launch(durable...); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		} else if skip := flag.Lookup("test.skip"); skip.Value.String() == "" { // examples cannot skip themselves
			fmt.Fprintln(os.Stderr, noServer+": examples are skipped")
			_ = skip.Value.Set("^Example")
		}
	}
	code := m.Run()
	if shared != nil {
		shared.kill()
		os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

// sharedServer returns the shared server of all tests, or skips the test.
func sharedServer(t testing.TB) *server {
	t.Helper()
	if shared == nil {
		t.Skip(noServer)
	}
	return shared
}

var prefixes atomic.Int64

// newPrefix returns a new Config.Prefix with characters that have a special meaning in
// Redis patterns, so that tests find a missing escape in SCAN.
func newPrefix() string { return fmt.Sprintf("t%d[*]?:", prefixes.Add(1)) }

// newStore opens a store over the server. If c has no prefix, newStore sets a new one.
func newStore(t testing.TB, s *server, c redisstore.Config) *redisstore.Store {
	t.Helper()
	if c.Client == nil {
		client := s.client()
		t.Cleanup(func() { client.Close() })
		c.Client = client
	}
	if c.Prefix == "" {
		c.Prefix = newPrefix()
	}
	store, err := redisstore.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func claimOf(value string) idempotency.Claim {
	return idempotency.Claim{
		Key: idempotency.Key{Scope: "tenant", Operation: "test.run", Value: value}, Token: idempotency.NewToken(),
		Fingerprint: idempotency.FingerprintOf("test/1", []byte(value)), Body: []byte("body of " + value), Group: "group",
		Terms: idempotency.Terms{Lease: time.Hour, TTL: 24 * time.Hour},
	}
}

func claim(t testing.TB, s idempotency.Store, c idempotency.Claim, want idempotency.Decision) idempotency.Outcome {
	t.Helper()
	out, err := s.Claim(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if out.Decision != want {
		t.Fatalf("claim of %s: got %v, want %v", strings.ToValidUTF8(c.Key.Value, "?"), out.Decision, want)
	}
	return out
}
