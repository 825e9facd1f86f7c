package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"
	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Scene is an event of typical size. Its message has about 1 kB.
type Scene struct {
	ID         string    `json:"id"`
	Collection string    `json:"collection"`
	Platform   string    `json:"platform"`
	Acquired   time.Time `json:"acquired"`
	PathRow    string    `json:"path_row"`
	CloudCover float64   `json:"cloud_cover"`
	BBox       []float64 `json:"bbox"`
	Assets     []string  `json:"assets"`
}

const source = "kfm.remote-sensing.landsat-refresh"

func identify(s Scene) (sqsfifo.Identity, error) {
	key, err := sqsfifo.JoinKey("landsat", s.Collection, s.ID)
	return sqsfifo.Identity{DedupeKey: key, Group: s.PathRow, Time: s.Acquired}, err
}

func scenes(n, groups int) []Scene {
	first := time.Date(2020, 12, 4, 19, 2, 11, 194_000_000, time.UTC)
	out := make([]Scene, n)
	const folder = "https://landsatlook.usgs.gov/data/collection02/level-2/standard/oli-tirs/2020/047/027/LC08_L2SP_047027_20201204_20210313_02_T1/"
	assets := []string{folder + "SR_B2.TIF", folder + "SR_B3.TIF", folder + "SR_B4.TIF", folder + "QA_PIXEL.TIF"}
	for i := range out {
		out[i] = Scene{
			ID: "LC08_L2SP_047027_20201204_20210313_02_T1_" + strconv.Itoa(i), Collection: "landsat-c2-l2", Platform: "landsat-8",
			Acquired: first.Add(time.Duration(i) * time.Second), PathRow: fmt.Sprintf("wrs2-%06d", i%groups), CloudCover: 1.55,
			BBox: []float64{-124.30385, 46.28396, -121.12904, 48.43385}, Assets: assets,
		}
	}
	return out
}

// number returns the number at the end of a scene's ID, after the last "_" (see scenes). It
// returns -1 if this text is not a number.
func (s Scene) number() int {
	i, err := strconv.Atoi(s.ID[strings.LastIndexByte(s.ID, '_')+1:])
	if err != nil {
		return -1
	}
	return i
}

// envelope is the message body that the hand-written loop sends. A program without this
// module would declare such a type.
type envelope struct {
	DedupeKey   string    `json:"dedupe_key"`
	EventID     uuid.UUID `json:"event_id"`
	EventSource string    `json:"event_source"`
	EventTime   time.Time `json:"event_time"`
	Payload     Scene     `json:"payload"`
}

// workers is the number of concurrent requests. The hand-written loop has this number of
// workers, and the producer may have this number of requests in flight.
const workers = 64

// raw sends the events with a hand-written loop over the SDK. Each worker sends ten events
// per request, with bodies from encoding/json. The loop keeps no order.
func raw(ctx context.Context, client *sqs.Client, queue string, events []Scene, workers int) error {
	var at atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, workers)
	for range workers {
		wg.Go(func() {
			for {
				end := int(at.Add(10))
				if end > len(events) {
					return
				}
				in := &sqs.SendMessageBatchInput{QueueUrl: &queue}
				for i, s := range events[end-10 : end] {
					body, err := json.Marshal(envelope{"landsat|" + s.Collection + "|" + s.ID, uuid.UUID(uuid.Must(uuid.NewV7())), source, s.Acquired, s})
					if err != nil {
						errs <- err
						return
					}
					in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{
						Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(string(body)), MessageGroupId: &s.PathRow,
					})
				}
				out, err := client.SendMessageBatch(ctx, in)
				if err == nil && len(out.Failed) > 0 {
					err = fmt.Errorf("%d entries failed", len(out.Failed))
				}
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

// tally is the result of sending events with a producer.
type tally struct {
	attempts, failed int
	failure          error         // error of one of the failed events, or nil
	first99          time.Duration // time until 99 % of the events had an outcome
}

// produce sends events with a producer. It calls overtaken, unless that is nil, for each event
// with [sqsfifo.ErrOvertaken], from any goroutine; these events do not count as failed.
func produce(ctx context.Context, client *sqs.Client, queue string, events []Scene, d sqsfifo.Delivery, overtaken func(Scene)) (tally, error) {
	p, err := sqsfifo.NewProducer(client, sqsfifo.Config[Scene]{QueueURL: queue, Source: source, Identify: identify, Delivery: d})
	if err != nil {
		return tally{}, err
	}
	var attempts, failed, ended, first99 atomic.Int64
	start := time.Now()
	var failure atomic.Pointer[error]
	done := func(r sqsfifo.Receipt, err error) {
		attempts.Add(int64(r.Attempts))
		if err != nil {
			last := err // only a failure allocates
			failed.Add(1)
			failure.Store(&last)
		}
		if ended.Add(1) == int64(len(events)*99/100) {
			first99.Store(int64(time.Since(start)))
		}
	}
	unlessOvertaken := func(s Scene) func(sqsfifo.Receipt, error) {
		return func(r sqsfifo.Receipt, err error) {
			if errors.Is(err, sqsfifo.ErrOvertaken) {
				overtaken(s)
				err = nil
			}
			done(r, err)
		}
	}
	for i := range events {
		callback := done
		if overtaken != nil {
			callback = unlessOvertaken(events[i])
		}
		p.SendAsync(ctx, events[i], callback)
	}
	if err := p.Close(ctx); err != nil {
		return tally{}, err
	}
	t := tally{attempts: int(attempts.Load()), failed: int(failed.Load()), first99: time.Duration(first99.Load())}
	if e := failure.Load(); e != nil {
		t.failure = *e
	}
	return t, nil
}
