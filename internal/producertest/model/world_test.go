package model

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// modelWorld simulates SQS and its network, and records the facts: the times of the
// requests of each submission, and the messages stored by SQS.
type modelWorld struct {
	seed    uint64
	q       *sqstest.Queue
	on      *modelMachine
	odds    map[string]float64 // probability of each fault in modelFaults, for the method `faultOf`
	periods []modelPeriod

	// strict means that the producers use the order Strict: a request has at most one
	// event of a group.
	strict bool

	// sabotage makes the network break a promise, to test the checks of the model. The
	// values are "late", "lie" and "invent", or "" for none.
	sabotage string

	mu       sync.Mutex
	clock    int // counter; its values order events at the same instant of virtual time
	subs     []*modelSub
	requests []*modelRequest
	accepts  []*modelAccept
	stored   map[string]*modelAccept // by message ID
	inFlight map[modelLane]bool
	tries    map[string]uint64 // number of requests, by the body of the first entry
	notes    []modelNote
	wrong    []modelViolation

	refuser *sqs.Client // a client whose requests never leave this machine
}

// modelLane is a message group of one producer.
type modelLane struct {
	producer int
	group    string
}

// modelRequest is one request to SQS, with its simulated fate and the times of its start
// and end.
type modelRequest struct {
	n, producer    int
	subs           []*modelSub
	plan           modelPlan
	start, end     time.Time
	startedAt      int
	endedAt        int
	answered       bool // the client returned before its context ended
	provesUnstored bool // the answer proves that SQS stored no entry
}

// modelAccept is a message stored by SQS.
type modelAccept struct {
	sub        *modelSub
	request    *modelRequest
	at         time.Time
	id, number string
	again      []*modelRequest // requests that SQS suppressed as duplicates of the message
}

// modelPlan is the simulated fate of a request.
type modelPlan struct {
	kind    string
	arrives bool
	out     time.Duration // travel time of the request, at most modelDelivery
	answer  time.Duration // time until the client returns, if its context does not end
	deaf    bool          // the client ignores its context
	entry   func(i int) string
}

// modelDelivery is the longest time that a request travels to SQS. Only the flags
// -model.break=late and -store.break=late exceed it.
const modelDelivery = 19900 * time.Millisecond

// modelPeriod is a period of the test. The field `kind` is "fair", or a fault that hits at
// least half of the requests in the period.
type modelPeriod struct {
	until time.Time
	kind  string
}

func newModelWorld(seed uint64, q *sqstest.Queue, rng *rand.Rand) *modelWorld {
	w := &modelWorld{
		seed: seed, q: q, on: newModelMachine(seed, q), odds: map[string]float64{},
		stored: map[string]*modelAccept{}, inFlight: map[modelLane]bool{}, tries: map[string]uint64{},
	}
	for _, kind := range modelFaults {
		w.odds[kind] = []float64{0, 0, 0.01, 0.05, 0.2}[rng.IntN(5)]
	}
	// The producer does not retry after these faults. Make them rare, so that the test
	// has many retries.
	for _, kind := range []string{"panic", "exit", "nothing"} {
		w.odds[kind] /= 10
	}
	at := time.Now()
	for range 40 {
		period := modelPeriod{kind: "fair"}
		at = at.Add(time.Duration(1+rng.IntN(120)) * time.Second)
		if rng.IntN(2) == 0 {
			period.kind = modelLongFaults[rng.IntN(len(modelLongFaults))]
			switch rng.IntN(12) {
			case 0, 1, 2:
				at = at.Add(time.Duration(rng.IntN(6)) * time.Minute)
			case 3: // an outage to the end of the program, with all its queued events
				period.kind = []string{"throttled", "refused"}[rng.IntN(2)]
				at = at.Add(3 * time.Hour)
			}
		}
		period.until = at
		w.periods = append(w.periods, period)
	}
	w.refuser = sqs.New(sqs.Options{
		Region: "us-east-1", HTTPClient: producertest.Unreachable{Fault: func() error { return producertest.ErrRefused }},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			if seed%2 == 0 {
				return aws.Credentials{}, fmt.Errorf("no credentials")
			}
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
		}),
	})
	return w
}

// modelLongFaults lists the faults that may last for a whole period (modelPeriod) and
// affect most requests of the period.
var modelLongFaults = []string{"black hole", "refused", "throttled", "failing", "slow", "lossy", "fails entries"}

// modelFaults lists the faults of single requests.
var modelFaults = []string{
	"lost", "late", "dropped", "black hole", "refused", "throttled", "failing", "slow", "fails entries",
	"unproven", "mangled", "poisoned", "panic", "exit", "nothing",
}

// faultOf chooses the fault of one request, or "" for none. In a period with a fault, at
// least half of the requests have the fault of the period. For the other requests, w.odds
// has the probability of each fault.
func (w *modelWorld) faultOf(now time.Time, rng *rand.Rand) string {
	for _, d := range w.periods {
		if now.Before(d.until) {
			switch chance := rng.IntN(10); {
			case d.kind == "fair":
			case d.kind == "lossy" && chance < 5:
				return []string{"lost", "late", "dropped", "unproven", "mangled"}[rng.IntN(5)]
			case d.kind != "lossy" && (chance < 8 || d.kind == "black hole" || d.kind == "refused"):
				return d.kind
			}
			break
		}
	}
	for _, kind := range modelFaults {
		if rng.Float64() < w.odds[kind] {
			return kind
		}
	}
	return ""
}

// plan decides whether and when a request arrives at SQS, and how the client answers. The
// decision does not depend on the order of concurrent requests, so two runs with one seed
// are similar.
func (w *modelWorld) plan(body string, now time.Time) modelPlan {
	h := fnv.New64a()
	_, _ = io.WriteString(h, body)
	w.tries[body]++
	rng := rand.New(rand.NewPCG(w.seed^h.Sum64(), w.tries[body]))
	tenths := func(n int) time.Duration { return time.Duration(rng.IntN(n)) * 100 * time.Millisecond }

	p := modelPlan{kind: w.faultOf(now, rng), arrives: true}
	p.out = time.Duration(1+rng.IntN(50)) * time.Millisecond
	if rng.IntN(10) == 0 {
		p.out = tenths(30)
	}
	p.answer = p.out + time.Duration(1+rng.IntN(50))*time.Millisecond
	switch p.kind {
	case "slow":
		p.out = min(tenths(200), modelDelivery)
		p.answer = p.out + tenths(100)
	case "late": // the client returns before the request arrives
		p.out = min(100*time.Millisecond+tenths(200), modelDelivery)
		p.answer = time.Duration(rng.Int64N(int64(p.out)))
	case "dropped", "throttled", "poisoned":
		p.arrives = false
	case "refused":
		p.arrives = false
		p.answer = tenths(30)
	case "black hole":
		p.arrives = rng.IntN(2) == 0
		p.out = min(tenths(200), modelDelivery)
		p.answer = time.Hour
	case "failing", "panic", "exit", "nothing":
		p.arrives = rng.IntN(2) == 0
	case "fails entries":
		fates := make([]string, 10)
		for i := range fates {
			fates[i] = []string{"", "", "", "throttled", "refused", "failed", "failed and stored"}[rng.IntN(7)]
		}
		p.entry = func(i int) string { return fates[i] }
	}
	if late := w.on.deafFor(rng); late > 0 && p.answer < time.Hour {
		p.answer, p.deaf = max(p.answer, late), true
	}
	switch {
	case w.sabotage == "late" && p.kind == "late":
		p.out = 310 * time.Second
	case w.sabotage == "lie" && p.kind == "throttled":
		p.arrives, p.out = true, p.answer
	}
	return p
}

// arrive delivers a request to SQS.
func (w *modelWorld) arrive(r *modelRequest, entries []types.SendMessageBatchRequestEntry) *sqs.SendMessageBatchOutput {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock++
	var let []types.SendMessageBatchRequestEntry
	failed := map[string]types.BatchResultErrorEntry{}
	hidden := map[string]bool{}
	for i, e := range entries {
		fate := ""
		if r.plan.entry != nil {
			fate = r.plan.entry(i)
		}
		f := types.BatchResultErrorEntry{Id: e.Id}
		switch fate {
		case "throttled":
			f.Code = aws.String("ThrottlingException")
		case "refused":
			f.Code, f.SenderFault = aws.String("InvalidMessageContents"), true
		case "failed", "failed and stored":
			f.Code = aws.String("InternalError")
		}
		if f.Code != nil {
			failed[*e.Id] = f
			w.note(r.subs[i], r, "entry "+fate)
		}
		if f.Code == nil || fate == "failed and stored" {
			let = append(let, e)
			hidden[*e.Id] = f.Code != nil
		}
	}
	out := &sqs.SendMessageBatchOutput{}
	if len(let) > 0 {
		stored, err := w.q.SendMessageBatch(context.Background(), &sqs.SendMessageBatchInput{QueueUrl: aws.String(w.q.URL()), Entries: let})
		if err != nil {
			w.fail(r.subs[0], "the queue refuses: %v", err)
			return out
		}
		for _, ok := range stored.Successful {
			i, _ := strconv.Atoi(*ok.Id)
			w.accept(r, r.subs[i], *ok.MessageId, *ok.SequenceNumber)
			if !hidden[*ok.Id] {
				out.Successful = append(out.Successful, ok)
			}
		}
	}
	for _, e := range entries {
		if f, ok := failed[*e.Id]; ok {
			out.Failed = append(out.Failed, f)
		}
	}
	return out
}

// accept records SQS's result for an entry.
func (w *modelWorld) accept(r *modelRequest, s *modelSub, id, number string) {
	a := w.stored[id]
	if a != nil {
		a.again = append(a.again, r)
		w.note(s, r, "suppressed")
		return
	}
	a = &modelAccept{sub: s, request: r, at: w.on.now(), id: id, number: number}
	w.stored[id] = a
	w.accepts = append(w.accepts, a)
	w.note(s, r, "accepted "+number)
}
