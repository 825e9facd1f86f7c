package sqstest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// vectorFile is a file in testdata/recorded; the README there describes the form.
type vectorFile struct {
	Fact    string
	Vectors []vector
}

type vector struct {
	Name, How, Source, Date string
	Steps                   []vectorStep
}

type vectorStep struct {
	Call        string
	In          json.RawMessage
	Headers     map[string]string
	Out         any
	Error       *vectorError
	Bytes       *string
	Order       []string
	WaitSeconds float64 `json:"wait_seconds"`
}

type vectorError struct {
	Code, Message, Type string
	Status              int
}

// vectorAnswer is the fake's answer to one step of a vector, in process or over HTTP.
type vectorAnswer struct {
	out   any
	err   *vectorError
	bytes *string // body of the answer over HTTP; nil for the in-process API
}

func recordedVectors(t *testing.T) []vectorFile {
	t.Helper()
	names, err := filepath.Glob("testdata/recorded/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	var out []vectorFile
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		var f vectorFile
		require.NoError(t, json.Unmarshal(text, &f), name)
		require.Equal(t, f.Fact+".json", filepath.Base(name))
		out = append(out, f)
	}
	return out
}

func TestRecorded(t *testing.T) {
	for _, f := range recordedVectors(t) {
		for _, v := range f.Vectors {
			require.Contains(t, []string{"recorded", "asserted"}, v.How)
			require.NotEmpty(t, v.Source)
			for name, call := range map[string]func(*sqstest.Server, vectorStep, string) (vectorAnswer, error){
				"in process": callInProcess, "over HTTP": callOverHTTP,
			} {
				t.Run(f.Fact+" "+v.Name+"/"+name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { replayVector(t, v, call) })
				})
			}
		}
	}
}

var errHTTPOnly = errors.New("this vector is about HTTP")

func replayVector(t *testing.T, v vector, call func(*sqstest.Server, vectorStep, string) (vectorAnswer, error)) {
	t.Helper()
	server, bound := sqstest.NewServer(), bindings{}
	for i, step := range v.Steps {
		if step.Call == "" {
			time.Sleep(time.Duration(step.WaitSeconds * float64(time.Second)))
			continue
		}
		answer, err := call(server, step, bound.quoted(string(step.In)))
		if errors.Is(err, errHTTPOnly) {
			t.Skip(err)
		}
		require.NoError(t, err, "step %d", i)
		if step.Error == nil {
			require.Nil(t, answer.err, "step %d: %+v", i, answer.err)
		} else {
			require.NotNil(t, answer.err, "step %d has to be refused", i)
			want := *step.Error
			want.Message = bound.plain(want.Message)
			if answer.bytes == nil || want.Type == "" {
				want.Type = answer.err.Type
			}
			require.Equal(t, want, *answer.err, "step %d", i)
		}
		require.NoError(t, bound.contains(step.Out, answer.out), "step %d: %s", i, step.Call)
		if answer.bytes == nil {
			continue
		}
		if step.Bytes != nil {
			require.Equal(t, *step.Bytes, *answer.bytes, "step %d", i)
		}
		rest := *answer.bytes
		for _, name := range step.Order {
			_, after, ok := strings.Cut(rest, `"`+name+`":`)
			require.True(t, ok, "step %d: %s is missing or too early in %s", i, name, *answer.bytes)
			rest = after
		}
	}
}

// bindings maps the name of a placeholder ${name} to its value.
type bindings map[string]string

var (
	placeholder      = regexp.MustCompile(`\$\{(\w+)\}`)
	wholePlaceholder = regexp.MustCompile(`^\$\{(\w+)\}$`)
)

func (b bindings) plain(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(p string) string { return b[p[2:len(p)-1]] })
}

// quoted replaces each placeholder ${name} in a JSON text by its value, escaped for a
// JSON string.
func (b bindings) quoted(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		value, _ := json.Marshal(b[p[2:len(p)-1]])
		return string(value[1 : len(value)-1])
	})
}

// contains returns an error unless got has every member and value of want.
func (b bindings) contains(want, got any) error {
	switch want := want.(type) {
	case nil:
		return nil
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("got %v, want an object", got)
		}
		for name, member := range want {
			if member == nil && object[name] != nil {
				return fmt.Errorf("%s is %v, want it absent", name, object[name])
			}
			if err := b.contains(member, object[name]); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	case []any:
		list, _ := got.([]any)
		if len(list) != len(want) {
			return fmt.Errorf("got %d elements, want %d: %v", len(list), len(want), got)
		}
		for i := range want {
			if err := b.contains(want[i], list[i]); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
	case string:
		if m := wholePlaceholder.FindStringSubmatch(want); m != nil && b[m[1]] == "" {
			text, ok := got.(string)
			if !ok || text == "" {
				return fmt.Errorf("got %v, want a text", got)
			}
			b[m[1]] = text
		}
		if want := b.plain(want); got != want {
			return fmt.Errorf("got %v, want %q", got, want)
		}
	default:
		if got != want {
			return fmt.Errorf("got %v, want %v", got, want)
		}
	}
	return nil
}

func callOverHTTP(s *sqstest.Server, step vectorStep, in string) (vectorAnswer, error) {
	r := httptest.NewRequest(http.MethodPost, "http://localhost:9324/", strings.NewReader(in))
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "AmazonSQS."+step.Call)
	for name, value := range step.Headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	text := w.Body.String()
	answer := vectorAnswer{bytes: &text}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &answer.out); err != nil {
			return answer, err
		}
	}
	if w.Code != http.StatusOK {
		code, _, _ := strings.Cut(w.Header().Get("X-Amzn-Query-Error"), ";")
		var body struct {
			Type    string `json:"__type"`
			Message string `json:"message"`
		}
		if err := json.Unmarshal([]byte(text), &body); err != nil {
			return answer, err
		}
		answer.err = &vectorError{Code: code, Message: body.Message, Type: body.Type, Status: w.Code}
	}
	return answer, nil
}

// callInProcess calls the method of s named by the step. The SDK's input cannot express a
// visibility timeout of zero, so for such a receive callInProcess sets the queue's
// attribute VisibilityTimeout to zero.
func callInProcess(s *sqstest.Server, step vectorStep, in string) (vectorAnswer, error) {
	if len(step.Headers) > 0 {
		return vectorAnswer{}, errHTTPOnly
	}
	var zero struct {
		QueueURL          string `json:"QueueUrl"`
		VisibilityTimeout *int32
	}
	if err := json.Unmarshal([]byte(in), &zero); err != nil {
		return vectorAnswer{}, err
	}
	if step.Call == "ReceiveMessage" && zero.VisibilityTimeout != nil && *zero.VisibilityTimeout == 0 {
		name := zero.QueueURL[strings.LastIndex(zero.QueueURL, "/")+1:]
		for _, d := range []string{"0", "30"} {
			set := vectorStep{Call: "SetQueueAttributes"}
			input := fmt.Sprintf(`{"QueueUrl":%q,"Attributes":{"VisibilityTimeout":%q}}`, name, d)
			if d == "30" {
				defer callInProcess(s, set, input)
			} else if _, err := callInProcess(s, set, input); err != nil {
				return vectorAnswer{}, err
			}
		}
	}
	method := reflect.ValueOf(s).MethodByName(step.Call)
	if !method.IsValid() {
		return vectorAnswer{}, fmt.Errorf("no method %s", step.Call)
	}
	input := reflect.New(method.Type().In(1).Elem())
	if err := json.Unmarshal([]byte(in), input.Interface()); err != nil {
		return vectorAnswer{}, err
	}
	results := method.Call([]reflect.Value{reflect.ValueOf(context.Background()), input})
	if err, _ := results[1].Interface().(error); err != nil {
		var api smithy.APIError
		var response interface{ HTTPStatusCode() int }
		if !errors.As(err, &api) || !errors.As(err, &response) {
			return vectorAnswer{}, err
		}
		return vectorAnswer{err: &vectorError{Code: api.ErrorCode(), Message: api.ErrorMessage(), Status: response.HTTPStatusCode()}}, nil
	}
	var answer vectorAnswer
	text, err := json.Marshal(results[0].Interface())
	if err == nil {
		err = json.Unmarshal(text, &answer.out)
	}
	return answer, err
}
