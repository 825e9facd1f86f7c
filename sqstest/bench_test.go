package sqstest

import (
	"encoding/binary"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// BenchmarkSendMessage sends new messages in process, from one and from two goroutines.
// SQSFIFO_WINDOW_IDS, such as 21000000, fills the window with that number of IDs first.
func BenchmarkSendMessage(b *testing.B) {
	before := heapInUse()
	q := benchmarkQueue(b)
	if text, ok := os.LookupEnv("SQSFIFO_WINDOW_IDS"); ok {
		ids, err := strconv.Atoi(text)
		if err != nil || ids < 1 {
			b.Fatalf("SQSFIFO_WINDOW_IDS=%q: must be a positive number", text)
		}
		fillWindow(b, q, ids)
		b.Logf("%d IDs in the window, %.1f B an ID", ids, float64(heapInUse()-before)/float64(ids))
	}
	var next atomic.Int64
	for _, goroutines := range []int{1, 2} {
		b.Run(strconv.Itoa(goroutines), func(b *testing.B) {
			b.ReportAllocs()
			var sending sync.WaitGroup
			left := atomic.Int64{}
			left.Store(int64(b.N))
			b.ResetTimer()
			for range goroutines {
				sending.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := q.SendMessage(b.Context(), newMessage(q, next.Add(1))); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			sending.Wait()
			perSecond(b)
			b.StopTimer()
			q.drop()
		})
	}
}

// BenchmarkSendReceiveDelete sends, receives and deletes one message at a time, in
// process.
func BenchmarkSendReceiveDelete(b *testing.B) {
	q := benchmarkQueue(b)
	b.ReportAllocs()
	n := int64(0)
	for b.Loop() {
		n++
		if _, err := q.SendMessage(b.Context(), newMessage(q, n)); err != nil {
			b.Fatal(err)
		}
		out, err := q.ReceiveMessage(b.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL())})
		if err != nil || len(out.Messages) != 1 {
			b.Fatal(out, err)
		}
		if _, err := q.DeleteMessage(b.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String(q.URL()), ReceiptHandle: out.Messages[0].ReceiptHandle}); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b)
}

// BenchmarkClientSendMessage sends through a real *sqs.Client: signing, serialization,
// checksums and the server's part of the protocol, over loopback or without a socket.
func BenchmarkClientSendMessage(b *testing.B) {
	q := benchmarkQueue(b)
	web := httptest.NewServer(NewServer(q))
	b.Cleanup(web.Close)
	for name, c := range map[string]*sqs.Client{
		"loopback": q.Client(func(o *sqs.Options) {
			o.BaseEndpoint = aws.String(web.URL)
			o.HTTPClient = web.Client()
		}),
		"in-memory": q.Client(),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n := int64(0)
			for b.Loop() {
				n++
				if _, err := c.SendMessage(b.Context(), newMessage(q, n)); err != nil {
					b.Fatal(err)
				}
			}
			perSecond(b)
			q.Advance(window.Interval)
			q.drop()
		})
	}
}

func benchmarkQueue(b *testing.B) *Queue {
	q, err := NewQueue(Config{DiscardDeleted: true})
	if err != nil {
		b.Fatal(err)
	}
	return q
}

func newMessage(q *Queue, n int64) *sqs.SendMessageInput {
	number := strconv.FormatInt(n, 10)
	return &sqs.SendMessageInput{
		QueueUrl: aws.String(q.URL()), MessageGroupId: aws.String("group-" + strconv.FormatInt(n%1000, 10)),
		MessageBody: aws.String(`{"dedupe_key":"scene/` + number + `","event_source":"kfm.remote-sensing.landsat-refresh","payload":{"number":` + number + `}}`),
	}
}

func perSecond(b *testing.B) {
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

// drop deletes all stored messages, as a receiver would.
func (q *Queue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.stored {
		if !m.deleted {
			q.remove(m)
		}
	}
}

// fillWindow adds IDs to the window, as if their messages had been sent within the last
// four minutes and deleted since.
func fillWindow(b *testing.B, q *Queue, ids int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	id := make([]byte, 64)
	for i := range ids {
		binary.BigEndian.PutUint64(id, uint64(i))
		at := now.Add(time.Duration(i) * (4 * time.Minute) / time.Duration(ids))
		if err := q.window.Put(at, q.window.Key("", string(id)), window.Record[accepted]{From: at, To: at}); err != nil {
			b.Fatal(err)
		}
	}
	q.offset += 4 * time.Minute
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
