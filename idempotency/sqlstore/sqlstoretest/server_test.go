//go:build unix

package sqlstoretest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

// server is a PostgreSQL of the test, which the test may kill.
type server struct {
	bin, dir string
	port     int
	as       *syscall.SysProcAttr
	process  *exec.Cmd
	exited   chan struct{}
}

// newServer initializes a server in a directory of its own, or skips the test.
func newServer(t *testing.T) *server {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		t.Skip("no initdb on this machine")
	}
	dir, err := os.MkdirTemp("", "sqlstore")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &server{bin: filepath.Dir(found[len(found)-1]), dir: dir, as: &syscall.SysProcAttr{Setpgid: true}}
	if os.Getuid() == 0 { // which PostgreSQL refuses to run as
		u, err := user.Lookup("postgres")
		if err != nil {
			t.Skip("PostgreSQL does not run as root, and there is no user postgres")
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		s.as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	initdb := s.command("initdb", "-D", filepath.Join(dir, "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8")
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Skipf("initdb: %v: %s", err, out)
	}
	s.start(t)
	t.Cleanup(func() { s.kill(syscall.SIGQUIT) })
	return s
}

func (s *server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir, cmd.SysProcAttr = s.dir, s.as
	return cmd
}

func (s *server) source() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?connect_timeout=5", s.port)
}

// start starts the server and waits until it answers. One that was killed may have to
// wait for the end of its orphans.
func (s *server) start(t *testing.T) {
	t.Helper()
	db, err := sql.Open("pgx", s.source())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	deadline := time.Now().Add(time.Minute)
	for {
		s.process = s.command("postgres", "-D", filepath.Join(s.dir, "data"), "-p", strconv.Itoa(s.port), "-k", s.dir, "-c", "listen_addresses=127.0.0.1")
		s.exited = make(chan struct{})
		if err := s.process.Start(); err != nil {
			t.Fatal(err)
		}
		go func(cmd *exec.Cmd, exited chan struct{}) {
			_ = cmd.Wait()
			close(exited)
		}(s.process, s.exited)
		for running := true; running; {
			select {
			case <-s.exited:
				running = false
			case <-time.After(50 * time.Millisecond):
			}
			if db.Ping() == nil {
				return
			}
			if time.Now().After(deadline) {
				t.Fatal("the server does not answer")
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the server does not start")
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// kill ends the server with the signal: SIGQUIT is its immediate mode, SIGKILL leaves
// even its children behind.
func (s *server) kill(signal syscall.Signal) {
	_ = s.process.Process.Signal(signal)
	<-s.exited
}

// The server is stopped in immediate mode, or killed, in the middle of a storm of
// claims over the same keys, and starts again. Nothing that was acknowledged is lost,
// no key is won twice, and each change has its entry in the ledger, under seals that hold.
func TestKilledServer(t *testing.T) {
	rounds := 10
	if testing.Short() {
		rounds = 2
	}
	srv := newServer(t)
	d := postgresAt(t, srv.source())
	s := d.store(t, sqlstore.Config{GroupTimeout: 5 * time.Second, Ledger: true})
	var heads []ledger.Head
	sealing, stopSealing := context.WithCancel(t.Context())
	var sealers sync.WaitGroup
	k := sealer(t, s.Ledger(), func(c *sqlstore.SealerConfig) {
		c.Interval = time.Millisecond
		c.Sink = func(_ context.Context, h ledger.Head) error {
			heads = append(heads, h)
			return nil
		}
	})
	sealers.Go(func() { _ = k.Run(sealing) })
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	claims, completed, repeated := 0, 0, 0
	for round := range rounds {
		var mu sync.Mutex
		wins := map[string][]idempotency.Outcome{}
		done := map[string]bool{}
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for w := range 16 {
			wg.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					value := fmt.Sprintf("%d-%d", round, i*8+w/2) // two callers a key
					c := claimOf(value)
					out, again, err := untilAnswered(func(ctx context.Context) (idempotency.Outcome, error) { return s.Claim(ctx, c) })
					if err != nil {
						t.Errorf("claim: %v", err)
						return
					}
					mu.Lock()
					repeated += again
					if out.Decision.Granted() {
						wins[value] = append(wins[value], out)
					}
					mu.Unlock()
					if !out.Decision.Granted() || i%2 == 1 {
						continue
					}
					_, again, err = untilAnswered(func(ctx context.Context) (struct{}, error) {
						return struct{}{}, s.Complete(ctx, out.Ref(), idempotency.Result{Response: []byte(value)})
					})
					if err != nil {
						t.Errorf("complete: %v", err)
						return
					}
					mu.Lock()
					repeated += again
					done[value] = true
					mu.Unlock()
				}
			})
		}
		time.Sleep(time.Duration(50+rng.IntN(300)) * time.Millisecond)
		srv.kill([]syscall.Signal{syscall.SIGQUIT, syscall.SIGKILL}[round%2])
		srv.start(t)
		time.Sleep(50 * time.Millisecond)
		close(stop)
		wg.Wait()
		for value, outs := range wins {
			if len(outs) != 1 {
				t.Errorf("key %s was won %d times", value, len(outs))
			}
			records, err := s.Lookup(t.Context(), claimOf(value).Key)
			if err != nil {
				t.Fatal(err)
			}
			want := idempotency.Running
			if done[value] {
				want = idempotency.Succeeded
			}
			if r := records[0]; r.Status != want || r.Fence != outs[0].Record.Fence {
				t.Errorf("key %s: the record is %v with fence %d, want %v with %d", value, r.Status, r.Fence, want, outs[0].Record.Fence)
			}
		}
		claims, completed = claims+len(wins), completed+len(done)
	}
	checkCount(t, d, s)
	stopSealing()
	sealers.Wait()
	db := d.open(t)
	heads = append(heads, untilSealed(t, s, db, d))
	report := verify(t, s.Ledger(), heads...)
	checkEntries(t, s.Ledger(), db, report)
	t.Logf("%d entries under %d seals; %d heads that were kept before and after the kills hold", report.Entries, report.Seals, len(heads))
	t.Logf("seed %d: the server was killed %d times; %d claims and %d completions acknowledged, %d calls repeated, none lost, none won twice", seed, rounds, claims, completed, repeated)
	if repeated == 0 {
		t.Error("no call was interrupted")
	}
}

// untilAnswered repeats a call until the server answers it.
func untilAnswered[T any](call func(context.Context) (T, error)) (out T, repeated int, err error) {
	for deadline := time.Now().Add(time.Minute); ; repeated++ {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		out, err = call(ctx)
		cancel()
		if err == nil || errors.Is(err, idempotency.ErrStaleClaim) || time.Now().After(deadline) {
			return out, repeated, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}
