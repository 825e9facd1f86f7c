package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
)

// module is one entry of the corpus.
type module struct {
	path, version string
	sum           string // as go.sum has it
	packages      []string
	control       bool // standard queues only: no finding is expected

	dir string // where it is, for one that does not come from the proxy
}

// corpus are the modules that send to SQS or SNS and that the public proxy serves.
var corpus = []module{
	{path: "gocloud.dev", version: "v0.47.0", sum: "h1:qN4/0vtutn97f1X5ziisf3WXuaFL9AR0FIRnyJRYzgA=", packages: []string{"./pubsub/awssnssqs/..."}},
	{path: "github.com/prometheus/alertmanager", version: "v0.34.2", sum: "h1:4oOnHs4J41X9n+7MucFjA3I5i5MtasjWTnIY27q5Qkw=", packages: []string{"./notify/..."}},
	{path: "github.com/argoproj/notifications-engine", version: "v0.5.0", sum: "h1:ZSIY4wwWvudYhryUclPnvajzz+KvEgHI5J6sDwBLByU=", packages: []string{"./pkg/services/..."}},
	{path: "gopkg.in/DataDog/dd-trace-go.v1", version: "v1.74.8", sum: "h1:h96ji92t9eXbPvSWhJ+lrPWetHiQNYlt48JKRO09NFA=", packages: []string{"./contrib/aws/..."}},
	{path: "go.opentelemetry.io/contrib/instrumentation/github.com/aws/aws-sdk-go-v2/otelaws", version: "v0.72.0", sum: "h1:ddEa1svIlpFtku1zdMRl7rAZ0NMlyO8QPnPfY5MQzpg=", packages: []string{"./..."}},
	{path: "sigs.k8s.io/cluster-api-provider-aws/v2", version: "v2.13.0", sum: "h1:yQz7GBrIkPLuEJ5MXNuZ/6eUssTJK8reUnZ6t5QIPnU=", packages: []string{"./exp/instancestate/...", "./pkg/cloud/services/instancestate/..."}, control: true},
	{path: "github.com/aws/aws-sdk-go", version: "v1.55.8", sum: "h1:JRmEUbU52aJQZ2AjX4q4Wu7t4uZjOu71uyNmaWlUkJQ=", packages: []string{"./example/aws/request/httptrace"}, control: true},
}

func (m module) String() string {
	if m.version == "" {
		return m.path
	}
	return m.path + "@" + m.version
}

func (m module) kind() string {
	if m.control {
		return "control"
	}
	return "sends"
}

// findings are those of the analyzer, with paths relative to the module.
func (m module) findings(ctx context.Context) ([]vet.Finding, error) {
	dir := m.dir
	if dir == "" {
		copied, err := m.fetch(ctx)
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(copied)
		dir = copied
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := outsideWorkspaces(); err != nil {
		return nil, err
	}
	report, err := vet.Run(ctx, vet.Options{Dir: dir, Patterns: m.packages, Flags: []string{"-sqsfifo.enable=all"}, NoCompliance: true})
	if err != nil {
		return nil, err
	}
	for i := range report.Findings {
		name := &report.Findings[i].Start.Filename
		rel, err := filepath.Rel(dir, *name)
		if err != nil {
			return nil, err
		}
		*name = filepath.ToSlash(rel)
	}
	return report.Findings, nil
}

// outsideWorkspaces makes the go command complete the go.sum of a module, which need
// not list what only its tests import.
func outsideWorkspaces() error {
	return errors.Join(os.Setenv("GOWORK", "off"), os.Setenv("GOFLAGS", "-mod=mod"))
}

// fetch downloads the module, checks that it is the one that was labelled, and copies
// it to a folder that can be written to.
func (m module) fetch(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", m.path+"@"+m.version) // #nosec G204 -- a module of the list
	cmd.Dir = os.TempDir()
	out, err := cmd.Output()
	var info struct{ Dir, Sum, Error string }
	if jerr := json.Unmarshal(out, &info); jerr != nil {
		return "", cmp.Or(err, jerr)
	}
	if info.Error != "" {
		return "", errors.New(info.Error)
	}
	if info.Sum != m.sum {
		return "", fmt.Errorf("the sum is %s, and that of the labelled module is %s", info.Sum, m.sum)
	}
	dir, err := os.MkdirTemp("", "corpus")
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.CopyFS(dir, os.DirFS(info.Dir)), writable(dir)); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// writable undoes the protection of the module cache, so that the go command
// may complete go.sum and the copy can be deleted.
func writable(dir string) error {
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Type()&os.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode()|0o200)
	})
}
