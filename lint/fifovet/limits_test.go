package fifovet

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// limitFile is the file around the example of a limit.
const limitFile = `package limit

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"log"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"
%s
	"example.com/limits/post"
)

const url = "https://sqs.eu-west-1.amazonaws.com/42/orders.fifo"

type Order struct {
	ID, Account string
	Amount      int
}

%s

func send(ctx context.Context, client *sqs.Client, order Order) error {
	input := &sqs.SendMessageInput{QueueUrl: aws.String(url), MessageBody: &order.ID, MessageGroupId: &order.Account}
%s
	_, err := client.SendMessage(ctx, input)
	return err
}

var _ = []any{
	bytes.Clone, context.Background, sha512.Sum512, hex.EncodeToString, log.Println, os.Getenv, filepath.Base, strings.Builder{},
	template.New, time.Now, types.MessageAttributeValue{}, uuid.NewString, post.Encode,
}
`

// limitPost is another package, which the examples call.
const limitPost = `package post

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/uuid"
)

func Fresh(ctx context.Context, client *sqs.Client, body string) error {
	_, err := client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String("https://sqs.eu-west-1.amazonaws.com/42/orders.fifo"), MessageGroupId: &body, MessageBody: &body, MessageDeduplicationId: aws.String(uuid.NewString()),
	})
	return err
}

func Encode(v any) string { return fmt.Sprint(v) }

func Line(i int) string { return fmt.Sprint(i) }
`

var declaration = regexp.MustCompile(`(?m)^(?:func|type|var) `)

// TestLimits analyzes the example of each limit in docs/rules.md. If the analyzer finds an
// example, strike the limit from package lint.
func TestLimits(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.CopyFS(root, os.DirFS(analysistest.TestData())))
	write := func(path, text string) {
		file := filepath.Join(root, "src", "example.com", "limits", path)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	write("post/post.go", limitPost)
	examples := map[string]lint.Limit{}
	rules := map[string][]string{}
	for _, r := range lint.Rules() {
		for _, l := range r.Limits() {
			code, declared, ours := l.Example, "", ""
			if at := declaration.FindStringIndex(code); at != nil {
				code, declared = code[:at[0]], code[at[0]:]
			}
			if strings.Contains(l.Example, "sqsfifo.") {
				ours = "\t\"github.com/kansas-frontier-matrix/sqsfifo\""
			}
			sent := "\n\t_, err := client.SendMessage(ctx, input)\n\treturn err\n"
			text := fmt.Sprintf(limitFile, ours, declared, code)
			if regexp.MustCompile(`(?m)^return `).MatchString(code) {
				text = text[:strings.LastIndex(text, sent)] + text[strings.LastIndex(text, sent)+len(sent):]
				text = strings.Replace(text, "\tinput := ", "\t_ = ", 1)
			}
			if regexp.MustCompile(`(?m)^(?:\w+, )+err := |^producer, err`).MatchString(code) {
				if i := strings.LastIndex(text, sent); i >= 0 {
					text = text[:i] + strings.Replace(text[i:], ":=", "=", 1)
				}
			}
			path := "example.com/limits/l" + fmt.Sprintf("%x", len(examples))
			for known, e := range examples {
				if e.Text == l.Text {
					path = known
				}
			}
			if _, known := examples[path]; !known {
				examples[path] = l
				write(strings.TrimPrefix(path, "example.com/limits/")+"/limit.go", text)
			}
			rules[path] = append(rules[path], r.ID)
			assert.NotEmpty(t, l.Example, l.Text)
		}
	}
	var paths []string
	for path := range examples {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, r := range analysistest.Run(loading{t}, root, analyzer(t), paths...) {
		path := r.Pass.Pkg.Path()
		assert.False(t, slices.ContainsFunc(r.Diagnostics, func(d analysis.Diagnostic) bool { return slices.Contains(rules[path], d.Category) }),
			"this is found, strike it from the limits: %s\n%s\n%v", examples[path].Text, examples[path].Example, r.Diagnostics)
	}
}
