package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func measured(t *testing.T, handler http.Handler) *emulator {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	e := &emulator{peer: peer{name: "tested"}, client: newClient(server.URL), process: self, figures: map[string]*figures{}}
	for _, w := range workKinds {
		e.figures[w.name] = &figures{}
	}
	return e
}

func TestWorks(t *testing.T) {
	e := measured(t, sqstest.NewServer())
	l := load{messages: 95, groups: 7, workers: 4, patience: time.Minute} // with 95 messages the last batch is not full
	for range 2 {
		if err := l.measure(context.Background(), e); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range workKinds {
		f := e.figures[w.name]
		if len(f.rates) != 2 || len(f.processor) != 2 || f.failure != nil || f.rates[0] <= 0 {
			t.Errorf("%s: %+v", w.name, f)
		}
	}
}

// altered serves a fake queue over HTTP. The function `change` modifies the queue's answers
// to the operation.
func altered(operation string, change func(answer string) string) http.Handler {
	server := sqstest.NewServer()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Amz-Target") != "AmazonSQS."+operation {
			server.ServeHTTP(w, r)
			return
		}
		recorded := httptest.NewRecorder()
		server.ServeHTTP(recorded, r)
		text := change(recorded.Body.String())
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(recorded.Code)
		_, _ = io.WriteString(w, text)
	})
}

// When an emulator gives a wrong answer, the measurement ends. Neither the current kind of
// work nor the later kinds in workKinds get a rate.
func TestWorksSeeWhatFails(t *testing.T) {
	twice := func(answer string) string {
		var out struct{ Messages []json.RawMessage }
		_ = json.Unmarshal([]byte(answer), &out)
		out.Messages = append(out.Messages, out.Messages...)
		text, _ := json.Marshal(out)
		return string(bytes.TrimSpace(text))
	}
	for name, broken := range map[string]struct {
		handler http.Handler
		work    int // index in workKinds of the failing kind; -1 if CreateQueue fails
		text    string
	}{
		"a message twice":     {altered("ReceiveMessage", twice), 1, "received twice"},
		"no entry accepted":   {altered("SendMessageBatch", func(string) string { return `{"Failed":[],"Successful":[]}` }), 2, "0 of 10 entries were accepted"},
		"no message deleted":  {altered("DeleteMessageBatch", func(string) string { return `{"Failed":[],"Successful":[]}` }), 3, "messages were deleted"},
		"the wrong digest":    {altered("SendMessage", func(a string) string { return strings.Replace(a, `"MD5OfMessageBody":"`, `"MD5OfMessageBody":"0`, 1) }), 0, "checksum"},
		"sends are not kept":  {notKept(), 1, "only 10 of 20 messages were received"},
		"a server that fails": {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }), -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := measured(t, broken.handler)
			err := load{messages: 20, groups: 7, workers: 2, patience: time.Second}.measure(t.Context(), e)
			if err == nil || !strings.Contains(err.Error(), broken.text) {
				t.Fatalf("got %v", err)
			}
			for i, w := range workKinds {
				f := e.figures[w.name]
				if got := f.failure != nil; got != (i == broken.work) {
					t.Errorf("%s: failure %v", w.name, f.failure)
				}
				if i >= broken.work && len(f.rates) > 0 {
					t.Errorf("%s has a rate", w.name)
				}
			}
		})
	}
}

// notKept is a server that loses sent messages: it puts every second message into another
// queue, from which nothing is received.
func notKept() http.Handler {
	other, _ := sqstest.NewQueue(sqstest.Config{Name: "other.fifo"})
	server := sqstest.NewServer(other)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Amz-Target") != "AmazonSQS.SendMessage" {
			server.ServeHTTP(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		var in map[string]any
		_ = json.Unmarshal(body, &in)
		text, _ := in["MessageDeduplicationId"].(string)
		if number := strings.TrimPrefix(text, "one-"); len(number) > 0 && (number[len(number)-1]-'0')%2 == 1 {
			in["QueueUrl"] = "other.fifo"
			body, _ = json.Marshal(in)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.ContentLength = int64(len(body))
		server.ServeHTTP(w, r)
	})
}
