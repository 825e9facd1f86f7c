//go:build unix

package pgserver

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
)

// Server is a PostgreSQL server in a temporary directory, on a loopback port.
type Server struct {
	bin, dir string
	port     int
	as       *syscall.SysProcAttr
	process  *exec.Cmd
	exited   chan struct{}
}

// New initializes and starts a server, or skips the test. The end of the test stops and
// deletes the server.
func New(t *testing.T) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a PostgreSQL server")
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		t.Skip("no initdb on this machine")
	}
	dir, err := os.MkdirTemp("", "pgserver")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &Server{bin: filepath.Dir(found[len(found)-1]), dir: dir, as: &syscall.SysProcAttr{Setpgid: true}}
	if os.Getuid() == 0 { // PostgreSQL refuses to run as root
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
	s.Start(t)
	t.Cleanup(func() { s.Stop(syscall.SIGQUIT) })
	return s
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir, cmd.SysProcAttr = s.dir, s.as
	return cmd
}

// Source returns the data source name of the server's database.
func (s *Server) Source() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?connect_timeout=5", s.port)
}

// Start starts a stopped server, and waits until the server answers. After a kill, Start
// may have to wait until the orphaned child processes of the killed server have ended.
func (s *Server) Start(t *testing.T) {
	t.Helper()
	db, err := sql.Open("pgx", s.Source())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		cmd := s.command("postgres", "-D", filepath.Join(s.dir, "data"), "-p", strconv.Itoa(s.port), "-k", s.dir, "-c", "listen_addresses=127.0.0.1")
		exited := make(chan struct{})
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() {
			_ = cmd.Wait()
			close(exited)
		}()
		s.process, s.exited = cmd, exited
		for running := true; running; {
			select {
			case <-exited:
				running = false
			case <-time.After(20 * time.Millisecond):
			}
			if db.Ping() == nil {
				return
			}
			if time.Now().After(deadline) {
				t.Fatal("the server does not answer")
			}
		}
	}
}

// Stop ends the server with the signal. After SIGQUIT, the server stops immediately,
// without a checkpoint. SIGKILL also leaves the server's child processes running.
func (s *Server) Stop(signal syscall.Signal) {
	_ = s.process.Process.Signal(signal)
	<-s.exited
}
