//go:build unix

package outboxtest

import (
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// server is a PostgreSQL that belongs to the test, which may stop it at any time.
type server struct {
	bin, dir string
	port     int
	as       *syscall.SysProcAttr
	process  *exec.Cmd
	exited   chan struct{}
}

// newServer initializes a server in its own directory, or skips the test.
func newServer(t *testing.T) *server {
	t.Helper()
	bins, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		bins = append(bins, path)
	}
	if len(bins) == 0 {
		t.Skip("no initdb on this machine")
	}
	dir, err := os.MkdirTemp("", "outbox")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &server{bin: filepath.Dir(bins[len(bins)-1]), dir: dir, as: &syscall.SysProcAttr{Setpgid: true}}
	if os.Getuid() == 0 { // PostgreSQL refuses to run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			t.Skip("PostgreSQL does not run as root, and there is no user postgres")
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		s.as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		require.NoError(t, os.Chown(dir, uid, gid))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	if out, err := s.command("initdb", "-D", filepath.Join(dir, "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8").CombinedOutput(); err != nil {
		t.Skipf("initdb: %v: %s", err, out)
	}
	s.start(t)
	t.Cleanup(func() { s.stop(syscall.SIGQUIT) })
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

// start starts the server and waits until it answers.
func (s *server) start(t *testing.T) {
	t.Helper()
	db, err := sql.Open("pgx", s.source())
	require.NoError(t, err)
	defer db.Close()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		cmd := s.command("postgres", "-D", filepath.Join(s.dir, "data"), "-p", strconv.Itoa(s.port), "-k", s.dir, "-c", "listen_addresses=127.0.0.1")
		exited := make(chan struct{})
		require.NoError(t, cmd.Start())
		go func() {
			_ = cmd.Wait()
			close(exited)
		}()
		s.process, s.exited = cmd, exited
		for running := true; running; {
			select {
			case <-exited: // the children of the last one may have been there still
				running = false
			case <-time.After(20 * time.Millisecond):
			}
			if db.Ping() == nil {
				return
			}
			require.False(t, time.Now().After(deadline), "the server does not answer")
		}
	}
}

// stop ends the server with the signal; SIGQUIT is an immediate stop, without a
// checkpoint.
func (s *server) stop(signal syscall.Signal) {
	_ = s.process.Process.Signal(signal)
	<-s.exited
}
