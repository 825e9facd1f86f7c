package main

import (
	"context"
	"crypto/md5" // #nosec G501 -- SQS answers with MD5 sums
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
)

// If the environment variable `bareEnv` is set, this program runs as the bare server. The
// value is the port.
const bareEnv = "SQSFIFO_BENCH_BARE"

// bareServer is a net/http server without state, and not an emulator. It answers
// SendMessage with the MD5 that the client checks. No SQS server in Go over net/http can be
// faster.
func bareServer(_ context.Context, _, port string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command(self) // #nosec G204 -- this program
	c.Env = append(os.Environ(), bareEnv+"="+port)
	return c, nil
}

func serveBare(port string) error {
	return http.ListenAndServe("127.0.0.1:"+port, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // #nosec G114
		var in struct{ MessageBody string }
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &in)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		switch r.Header.Get("X-Amz-Target") {
		case "AmazonSQS.SendMessage":
			sum := md5.Sum([]byte(in.MessageBody)) // #nosec G401
			_, _ = io.WriteString(w, `{"MD5OfMessageBody":"`+hex.EncodeToString(sum[:])+`","MessageId":"00000000-0000-4000-8000-000000000000"}`)
		case "AmazonSQS.ListQueues":
			_, _ = io.WriteString(w, `{}`)
		case "AmazonSQS.CreateQueue":
			_, _ = io.WriteString(w, `{"QueueUrl":"http://127.0.0.1/000000000000/bare.fifo"}`)
		default:
			w.WriteHeader(http.StatusNotImplemented)
		}
	}))
}
