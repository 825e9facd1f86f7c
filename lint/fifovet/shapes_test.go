package fifovet

import (
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// prelude is the first file of a generated package. It declares the events, the clients
// and the settings.
const prelude = `package %s

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log"
	"os"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"text/template"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	sqs1 "github.com/aws/aws-sdk-go/service/sqs"
	"github.com/google/uuid"
	"google.golang.org/protobuf/encoding/protojson"

	"example.com/shape/pb"
	"example.com/shape/post"
	"example.com/shape/retry"
)

const ordersURL = "https://sqs.eu-west-1.amazonaws.com/42/orders.fifo"

type order struct {
	ID, Account string
	Amount      int
	At          time.Time
	Lines       []string
	Tags        map[string]string
}

func (e *order) entries() []types.SendMessageBatchRequestEntry {
	return []types.SendMessageBatchRequestEntry{{Id: &e.ID, MessageBody: aws.String(encode(e)), MessageGroupId: &e.Account, MessageDeduplicationId: &e.ID}}
}

func (e *order) olderEntries() []*sqs1.SendMessageBatchRequestEntry {
	return []*sqs1.SendMessageBatchRequestEntry{{Id: &e.ID, MessageBody: aws.String(encode(e)), MessageGroupId: &e.Account, MessageDeduplicationId: &e.ID}}
}

func (e *order) receipts() []types.DeleteMessageBatchRequestEntry {
	return []types.DeleteMessageBatchRequestEntry{{Id: &e.ID, ReceiptHandle: &e.ID}}
}

func (e *order) published() []snstypes.PublishBatchRequestEntry {
	return []snstypes.PublishBatchRequestEntry{{Id: &e.ID, Message: aws.String(encode(e)), MessageGroupId: &e.Account, MessageDeduplicationId: &e.ID}}
}

// tokenSource is an interface with one implementation.
type tokenSource interface{ Issue() string }

type tokenFactory struct{}

func (tokenFactory) Issue() string { return uuid.NewString() }

// keyOf is an interface with one implementation.
type keyOf interface{ Of(e *order) string }

type orderKeys struct{}

func (orderKeys) Of(e *order) string { return e.Account + "/" + e.ID }

type batchAPI interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
}

type key struct{}

var (
	client *sqs.Client
	older  *sqs1.SQS
	topic  *sns.Client
	mutex  sync.Mutex
)

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}

func must[T any](v T, err error) T { return v }

var _ = []any{
	bytes.Clone, rand.Text, sha256.Sum256, base64.StdEncoding, gob.NewEncoder, hex.EncodeToString, errors.New, fmt.Sprint, log.Println, os.Getenv, path.Join,
	reflect.ValueOf, slices.Sort[[]string], iter.Pull[string], strconv.Itoa, strings.Join, atomic.AddInt64, template.New, protojson.Marshal, pb.New, post.Send, retry.Do, sns.Options{}, snstypes.PublishBatchRequestEntry{},
}
`

// generate writes the generated call sites into packages below a GOPATH, one package for
// each sender, and returns the import paths. Each call site has separate functions and
// types.
func generate(t *testing.T, root string, sites []shape) []string {
	require.NoError(t, os.CopyFS(root, os.DirFS(analysistest.TestData())))
	bySender := map[string][]int{}
	for i, s := range sites {
		bySender[s.sender] = append(bySender[s.sender], i)
	}
	var paths []string
	for k, sender := range slices.Sorted(maps.Keys(bySender)) {
		name := fmt.Sprintf("g%d", k)
		dir := filepath.Join(root, "src", "example.com", "generatedsites", name)
		require.NoError(t, os.MkdirAll(dir, 0o700))
		var b strings.Builder
		fmt.Fprintf(&b, prelude, name)
		for _, i := range bySender[sender] {
			fmt.Fprintf(&b, "\n//site %d\n%s\nfunc end%d() {}\n", i, numbered(sites[i].code, i), i)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".go"), []byte(b.String()), 0o600))
		paths = append(paths, "example.com/generatedsites/"+name)
	}
	return paths
}

// within returns the diagnostics of a package by the number of the generated call site.
// Call site N is the code between the comment //site N and the function endN.
func within(pass *analysis.Pass, diagnostics []analysis.Diagnostic) map[int][]analysis.Diagnostic {
	found := map[int][]analysis.Diagnostic{}
	for _, file := range pass.Files {
		for _, group := range file.Comments {
			for _, c := range group.List {
				n := -1
				if _, err := fmt.Sscanf(c.Text, "//site %d", &n); err != nil {
					continue
				}
				end := file.FileEnd
				for _, decl := range file.Decls {
					if fn, ok := decl.(*ast.FuncDecl); ok && fn.Name.Name == fmt.Sprintf("end%d", n) {
						end = fn.Pos()
					}
				}
				found[n] = nil
				for _, d := range diagnostics {
					if c.Pos() <= d.Pos && d.Pos < end {
						found[n] = append(found[n], d)
					}
				}
			}
		}
	}
	return found
}

// loading receives the errors of analysistest. It reports errors in t, for example if a
// package does not compile. It ignores errors about unexpected diagnostics, because
// TestShapes counts the diagnostics.
type loading struct{ t *testing.T }

func (l loading) Errorf(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !strings.Contains(text, "unexpected") {
		l.t.Errorf("%.4000s", text)
	}
}

// count has numbers of generated call sites, for example of all sites with one sender.
type count struct {
	wrong   int // call sites that break a rule
	found   int // wrong call sites with a finding
	right   int // call sites without a fault
	flagged int // right call sites with a finding
}

func (c count) String() string {
	return fmt.Sprintf("%4d of %4d wrong found, %3d of %4d right flagged", c.found, c.wrong, c.flagged, c.right)
}

// TestShapes counts findings at generated call sites: combinations of sources, carriers,
// senders, surroundings and queues.
func TestShapes(t *testing.T) {
	if testing.Short() {
		t.Skip("analyzes thousands of generated sites")
	}
	t.Parallel()
	sites := shapesOf()
	root := cmp.Or(os.Getenv("SHAPES_DIR"), t.TempDir())
	paths := generate(t, root, sites)
	verbose := os.Getenv("SHAPES")
	axes := map[string]map[string]*count{"rule": {}, "carrier": {}, "sender": {}, "source": {}, "limit": {}}
	var total, limits count
	for _, r := range analysistest.Run(loading{t}, root, analyzer(t), paths...) {
		for n, diagnostics := range within(r.Pass, r.Diagnostics) {
			s := sites[n]
			hit := slices.ContainsFunc(diagnostics, func(d analysis.Diagnostic) bool { return d.Category == s.rule })
			other := !s.wrong && len(diagnostics) > 0
			add := func(c *count) {
				if s.wrong {
					c.wrong++
					if hit {
						c.found++
					}
				} else {
					c.right++
					if other {
						c.flagged++
					}
				}
			}
			axis := func(name, value string) {
				c := axes[name][value]
				if c == nil {
					c = &count{}
					axes[name][value] = c
				}
				add(c)
			}
			if s.wrong && s.limit != "" {
				add(&limits)
				axis("limit", s.limit)
			} else {
				add(&total)
				axis("rule", s.rule)
				axis("carrier", s.carrier)
				axis("sender", s.sender)
				axis("source", s.source)
			}
			if verbose != "" && (s.wrong && !hit && s.limit == "" || other) && strings.Contains(s.rule+"|"+s.carrier+"|"+s.sender+"|"+s.source, strings.TrimPrefix(verbose, "all")) {
				t.Logf("wrong %v: %s, %s, %s, %s: %d\n%s", s.wrong, s.rule, s.source, s.carrier, s.sender, n, s.code)
				for _, d := range diagnostics {
					t.Logf("   %s", d.Message)
				}
			}
		}
	}
	for _, name := range []string{"rule", "carrier", "sender", "source", "limit"} {
		values := slices.SortedFunc(maps.Keys(axes[name]), cmp.Compare[string])
		for _, v := range values {
			t.Logf("%-8s %-40s %s", name, v, axes[name][v])
		}
	}
	t.Logf("%d sites: %s; documented limits: %s", len(sites), total, limits)
	assert.GreaterOrEqual(t, total.wrong+total.right, 500)
	assert.GreaterOrEqual(t, total.found*100, total.wrong*90, "wrong sites that are found")
	assert.LessOrEqual(t, total.flagged*100, total.right, "right sites that are flagged")
	_ = lint.Error
}
