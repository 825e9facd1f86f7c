package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
)

// user is the environment of a new user: an empty home, an empty module cache, and a
// proxy with the public modules and the modules of this working tree.
type user struct {
	root, version string
	env           []string
}

func newUser(t *testing.T) user {
	t.Helper()
	if testing.Short() {
		t.Skip("installs the released modules, which takes minutes")
	}
	if runtime.GOOS == "windows" {
		t.Skip("the lines of the guide are for a shell")
	}
	root, err := rootFolder()
	require.NoError(t, err)
	modules, err := releasedModules(root)
	require.NoError(t, err)
	u := user{root: root, version: modules[1].ownRequirements(modules)[0].Version}
	proxy := t.TempDir()
	_, err = rehearse(root, u.version, proxy)
	require.NoError(t, err)

	goEnv := func(name string) string {
		t.Helper()
		value, err := run(root, "go", "env", name)
		require.NoError(t, err)
		return value
	}
	// Use this machine's module cache as a second proxy, to download fewer modules. The
	// files have the layout of a proxy.
	home, downloaded := t.TempDir(), filepath.Join(goEnv("GOMODCACHE"), "cache", "download")
	for name, value := range map[string]string{
		"PATH":        os.Getenv("PATH"),
		"HOME":        home,
		"GOPATH":      filepath.Join(home, "go"),
		"GOPROXY":     "file://" + proxy + ",file://" + downloaded + "," + goEnv("GOPROXY"),
		"GONOSUMDB":   modules[0].path, // no checksum database for modules with this path prefix; all others are verified
		"GOCACHE":     goEnv("GOCACHE"),
		"GOFLAGS":     "-modcacherw -trimpath", // -trimpath: the folder of the module cache has no effect on compiled packages
		"GOTOOLCHAIN": "local",
	} {
		u.env = append(u.env, name+"="+value)
	}
	return u
}

// line runs a shell command line in the folder dir. It returns the output and the exit
// code.
func (u user) line(t *testing.T, dir, line string) (output string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line) // #nosec G204 -- the tests in this file write the command line
	cmd.Dir, cmd.Env = dir, append(u.env, "PWD="+dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// must runs a shell command line and requires the exit code 0.
func (u user) must(t *testing.T, dir, line string) string {
	t.Helper()
	out, code := u.line(t, dir, line)
	require.Zero(t, code, "%s\n%s", line, out)
	return out
}

// program writes a module with the main package code into an empty folder.
func (u user) program(t *testing.T, code string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, "main.go"), code)
	u.must(t, dir, "go mod init example.com/program")
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// A user installs each released module from its packed version.
func TestInstall(t *testing.T) {
	u := newUser(t)
	const module = "github.com/kansas-frontier-matrix/sqsfifo"

	t.Run("first program", func(t *testing.T) {
		code, err := os.ReadFile(filepath.Join(u.root, "examples/first/main.go"))
		require.NoError(t, err)
		dir := u.program(t, string(code))
		u.must(t, dir, "go get "+module)
		assert.Contains(t, u.must(t, dir, "go run ."), "<nil>")
		sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
		require.NoError(t, err)
		for _, name := range []string{"porcupine", "modernc.org", "pgx", "redis", "dynamodb", "kong"} {
			assert.NotContains(t, string(sums), name, "a producer needs no %s", name)
		}
	})
	t.Run("command", func(t *testing.T) {
		dir := t.TempDir()
		out := u.must(t, dir, "GOBIN="+dir+" go install "+module+"/cmd/sqsfifo@"+u.version+" && ./sqsfifo version")
		assert.Contains(t, out, u.version)
	})
	drivers := map[string]string{}
	for _, name := range []string{"modernc.org/sqlite"} {
		version, err := run(u.root, "go", "list", "-m", "-f", "{{.Version}}", name)
		require.NoError(t, err)
		drivers[name] = version
	}
	for name, store := range map[string]struct{ get, imports, open string }{
		"sqlstore": {
			module + " modernc.org/sqlite@" + drivers["modernc.org/sqlite"], `"database/sql"; _ "modernc.org/sqlite"; "` + module + `/idempotency/sqlstore"`,
			`db, err := sql.Open("sqlite", "file:events.db?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)")
	if err != nil { panic(err) }
	if err := sqlstore.Migrate(ctx, db, sqlstore.SQLite); err != nil { panic(err) }
	store, err := sqlstore.Open(ctx, sqlstore.Config{DB: db, Dialect: sqlstore.SQLite})`,
		},
		"redisstore": {
			module + "/idempotency/redisstore", `"github.com/redis/go-redis/v9"; "` + module + `/idempotency/redisstore"`,
			`store, err := redisstore.Open(ctx, redisstore.Config{Client: redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}), Prefix: "events:"})`,
		},
		"dynamostore": {
			module + "/idempotency/dynamostore", `"github.com/aws/aws-sdk-go-v2/service/dynamodb"; "` + module + `/idempotency/dynamostore"`,
			`store, err := dynamostore.Open(ctx, dynamostore.Config{Client: dynamodb.New(dynamodb.Options{Region: "us-east-1"}), Table: "events"})`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := u.program(t, fmt.Sprintf("package main\n\nimport (\"context\"; \"fmt\"; %s; %q)\n\nfunc main() {\n\tctx := context.Background()\n\t%s\n\tfmt.Println(sqsfifo.StoreConfig{Store: store}.Store != nil, err)\n}\n", store.imports, module, store.open))
			u.must(t, dir, "go get "+store.get)
			u.must(t, dir, "go mod tidy && go build -o program .")
			if name == "sqlstore" {
				assert.Equal(t, "true <nil>\n", u.must(t, dir, "./program"))
			}
		})
	}
	// "golangci-lint custom" builds golangci-lint with an import of the plugin. This
	// program has the same import.
	t.Run("golangci plugin", func(t *testing.T) {
		dir := u.program(t, "package main\n\nimport _ \""+module+"/lint/golangci\"\n\nfunc main() {}\n")
		u.must(t, dir, "go get "+module+" && go mod tidy && go run .")
	})
}

// A team adds the command sqsfifo to a module as a tool, and runs the lines shown in
// docs/guide/linting.md.
func TestInAScratchModule(t *testing.T) {
	u := newUser(t)
	guide, err := os.ReadFile(filepath.Join(u.root, "docs/guide/linting.md"))
	require.NoError(t, err)
	ofGuide := func(line string) string {
		t.Helper()
		assert.True(t, strings.Contains(string(guide), "\n"+line+"\n"), "the guide does not have the line %s", line)
		return line
	}
	dir := t.TempDir()
	for name, text := range scratch {
		write(t, filepath.Join(dir, name), text)
	}
	u.must(t, dir, "go get github.com/kansas-frontier-matrix/sqsfifo")
	u.must(t, dir, ofGuide("go get -tool github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo"))
	u.must(t, dir, "go mod tidy")
	findings := func(line string) string {
		t.Helper()
		out, code := u.line(t, dir, ofGuide(line))
		assert.Equal(t, 1, code, out)
		assert.Contains(t, out, "raw/raw.go:11:")
		return out
	}
	assert.Contains(t, findings(`go vet -vettool="$(go tool -n sqsfifo)" ./...`), " SF009: ")
	findings("go tool sqsfifo vet ./...")
	u.must(t, dir, ofGuide("go tool sqsfifo vet --write-baseline .sqsfifo-baseline ./..."))
	u.must(t, dir, ofGuide("go tool sqsfifo vet --baseline .sqsfifo-baseline ./..."))
	out := findings("go tool sqsfifo vet --write ./...")
	assert.Contains(t, out, "orders/orders.go:10:17: SF020: ")
	assert.Contains(t, out, "wrote orders/"+vet.SkeletonFile)
	u.must(t, dir, "go vet ./...") // the new test compiles
	assert.Contains(t, u.must(t, dir, ofGuide("go tool sqsfifo explain SF001")), "attr-only-identity")
	_, code := u.line(t, dir, ofGuide(`go vet -fix -vettool="$(go tool -n sqsfifo)" ./...`))
	assert.LessOrEqual(t, code, 1)
}

// scratch is a module with two faults: it calls the SDK's SendMessage directly, and its
// producer has no compliance test.
var scratch = map[string]string{
	"go.mod": "module example.com/scratch\n\ngo 1.26.0\n",
	"orders/orders.go": `package orders

import "github.com/kansas-frontier-matrix/sqsfifo"

type order struct {
	ID string ` + "`json:\"id\"`" + `
}

func Producer(client sqsfifo.Client, queueURL string) (*sqsfifo.Producer[order], error) {
	return sqsfifo.NewProducer(client, sqsfifo.Config[order]{QueueURL: queueURL})
}
`,
	"raw/raw.go": `package raw

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func Send(ctx context.Context, client *sqs.Client, body string) error {
	_, err := client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:    aws.String("https://sqs.us-east-1.amazonaws.com/000000000000/orders.fifo"),
		MessageBody: &body,
	})
	return err
}
`,
}
