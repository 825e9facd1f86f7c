package sqstest

// Deviations from AWS in this file:
//   - Without MaxNumberOfMessagesPerSecond a task moves all available messages immediately.
//     With the value n, it moves one message each 1/n s of the source's clock.
//   - A task also moves messages that arrive during the move. A cancelled task is CANCELLED
//     immediately.
//   - Only the error messages of F-142 were recorded. The others are the fake's own.

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"
)

// The states of a move task.
const (
	taskRunning   = "RUNNING"
	taskCompleted = "COMPLETED"
	taskCancelled = "CANCELLED"
	taskFailed    = "FAILED"
)

const (
	maxMoveRate    = 500
	maxListedTasks = 10

	// heldGroupRetry is the time after which a task looks for messages again if the
	// first message of every group was hidden.
	heldGroupRetry = time.Second
)

// moveTask moves messages of a dead-letter queue back to their source queues, or to one
// destination. It has no goroutine. Instead, every API call to a queue of the task first
// makes the moves that are due on the source's clock, real or virtual.
type moveTask struct {
	handle string
	source *Queue
	// destination is nil if each message moves back to the queue that it came from.
	destination *Queue
	find        func(arn string) *Queue
	rate        int // messages a second; zero moves all immediately
	started     time.Time
	toMove      int

	mu     sync.Mutex // lock order: moveTask.mu before the mutexes of queues
	status string
	reason string
	moved  int
	steps  int // messages moved or dropped as duplicates so far
	due    time.Time
}

// run moves the messages that the task should have moved by now.
func (t *moveTask) run() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.status == taskRunning {
		now := t.source.Now()
		if now.Before(t.due) && !t.source.empty() {
			return
		}
		moved, wait := t.step()
		switch {
		case wait:
			t.due = now.Add(heldGroupRetry)
			return
		case !moved:
			return
		case t.rate > 0:
			t.due = t.started.Add(time.Duration(t.steps) * time.Second / time.Duration(t.rate))
		}
	}
}

// step moves one message or ends the task. The result `wait` is true if no message can move,
// because the first message of every group is hidden.
func (t *moveTask) step() (moved, wait bool) {
	t.source.mu.Lock()
	t.source.settle(t.source.now())
	m, left := t.source.oldestReady(), t.source.live
	t.source.mu.Unlock()
	switch {
	case left == 0 || t.source.gone.Load():
		t.status = taskCompleted
		return false, false
	case m == nil:
		return false, true
	}
	to := t.destination
	if to == nil {
		if m.source == "" {
			t.fail("CouldNotDetermineMessageSource")
			return false, false
		}
		to = t.find(arnOf(Region, t.source.config.Account, m.source))
	}
	if to == nil || to.gone.Load() {
		t.fail("AWS.SimpleQueueService.NonExistentQueue")
		return false, false
	}
	unlock := lockBoth(t.source, to)
	defer unlock()
	if t.source.oldestReady() != m {
		return true, false // a receive took m while the source was unlocked; try again
	}
	t.source.removeMoved(m)
	// The queue may drop m as a duplicate. Such a message does not count as moved (F-113).
	if to.addMovedBack(m) {
		t.moved++
	}
	t.steps++
	return true, false
}

func (t *moveTask) fail(reason string) { t.status, t.reason = taskFailed, reason }

func (q *Queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.settle(q.now())
	return q.live == 0
}

// oldestReady returns the message that the next receive would return first, or nil if none
// is visible. The caller holds the queue's mutex and has called settle.
func (d *delivery) oldestReady() *message {
	if d.ready.Len() == 0 {
		return nil
	}
	return d.ready.list[0].head
}

func (t *moveTask) running() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status == taskRunning
}

func (t *moveTask) entry(region string) types.ListMessageMoveTasksResultEntry {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := types.ListMessageMoveTasksResultEntry{
		ApproximateNumberOfMessagesMoved:  int64(t.moved),
		ApproximateNumberOfMessagesToMove: aws.Int64(int64(t.toMove)),
		SourceArn:                         aws.String(t.source.arnIn(region)),
		StartedTimestamp:                  t.started.UnixMilli(),
		Status:                            aws.String(t.status),
	}
	if t.destination != nil {
		e.DestinationArn = aws.String(t.destination.arnIn(region))
	}
	if t.rate > 0 {
		e.MaxNumberOfMessagesPerSecond = aws.Int32(int32(t.rate))
	}
	if t.reason != "" {
		e.FailureReason = aws.String(t.reason)
	}
	if t.status == taskRunning { // AWS documents that only a running task has a handle
		e.TaskHandle = aws.String(t.handle)
	}
	return e
}

// moves holds the running move tasks that may take messages from a queue or add
// messages to it. The zero value is ready.
type moves struct {
	mu      sync.Mutex
	tasks   []*moveTask
	running atomic.Int32 // len(tasks), for reads without the lock
}

func (m *moves) add(t *moveTask) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tasks = append(m.tasks, t)
	m.running.Store(int32(len(m.tasks)))
}

// untilNextMove returns the time until one of the queue's move tasks may have to move a
// message. It returns at most the duration `longest`. The caller holds no queue lock.
func (m *moves) untilNextMove(longest time.Duration) time.Duration {
	for _, t := range m.all() {
		t.mu.Lock()
		due := t.due
		t.mu.Unlock()
		longest = min(longest, max(due.Sub(t.source.Now()), 1))
	}
	return longest
}

func (m *moves) all() []*moveTask {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tasks[:len(m.tasks):len(m.tasks)]
}

// run lets every task move its due messages, and forgets ended tasks. The caller holds no
// queue lock.
func (m *moves) run() {
	if m.running.Load() == 0 {
		return // usually there are no tasks
	}
	over := map[*moveTask]bool{}
	for _, t := range m.all() {
		t.run()
		if !t.running() {
			over[t] = true
		}
	}
	if len(over) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var left []*moveTask
	for _, t := range m.tasks {
		if !over[t] {
			left = append(left, t)
		}
	}
	m.tasks = left
	m.running.Store(int32(len(left)))
}

func (s *Server) startMove(_ context.Context, in *sqs.StartMessageMoveTaskInput) (*sqs.StartMessageMoveTaskOutput, error) {
	if in.SourceArn == nil {
		return nil, missing("SourceArn")
	}
	rate := int(aws.ToInt32(in.MaxNumberOfMessagesPerSecond))
	if in.MaxNumberOfMessagesPerSecond != nil && (rate < 1 || rate > maxMoveRate) {
		return nil, invalidValue(rate, "MaxNumberOfMessagesPerSecond", "Must be between 1 and 500, if provided.")
	}
	source := s.byARN(*in.SourceArn)
	if source == nil {
		return nil, resourceNotFound.because("The resource that you specified for the SourceArn parameter doesn't exist.")
	}
	if len(s.sourcesOf(source)) == 0 {
		return nil, invalidParameterValue.because("Source queue must be configured as a Dead Letter Queue.")
	}
	t := &moveTask{
		source: source, find: s.byARN, rate: rate, started: source.Now(), status: taskRunning,
		handle: taskHandle(*in.SourceArn),
	}
	if in.DestinationArn != nil {
		t.destination = s.byARN(*in.DestinationArn)
		switch {
		case t.destination == nil:
			return nil, resourceNotFound.because("The resource that you specified for the DestinationArn parameter doesn't exist.")
		case t.destination == source:
			return nil, invalidParameterValue.because("Source queue and destination queue cannot be the same.")
		case t.destination.config.Standard != source.config.Standard:
			return nil, invalidParameterValue.because("Source queue and destination queue must be of the same type.")
		}
	}
	source.mu.Lock()
	source.settle(source.now())
	t.toMove = source.live
	source.mu.Unlock()
	if err := s.addTask(t); err != nil {
		return nil, err
	}
	for _, q := range s.Queues() {
		q.moves.add(t)
	}
	t.run()
	for _, q := range s.Queues() {
		q.mu.Lock()
		// Long polls must compute their sleep again, as the task may bring a message earlier.
		q.wake()
		q.mu.Unlock()
	}
	return &sqs.StartMessageMoveTaskOutput{TaskHandle: aws.String(t.handle)}, nil
}

type taskHandleForm struct {
	TaskID    string `json:"taskId"`
	SourceARN string `json:"sourceArn"`
}

func taskHandle(sourceARN string) string {
	b, _ := json.Marshal(taskHandleForm{uuid.NewString(), sourceARN}) // two strings always encode
	return base64.StdEncoding.EncodeToString(b)
}

// sourceOfTask returns the ARN in a task handle, and false for an invalid handle.
func sourceOfTask(handle string) (arn string, ok bool) {
	var form taskHandleForm
	b, err := base64.StdEncoding.DecodeString(handle)
	if err != nil || json.Unmarshal(b, &form) != nil {
		return "", false
	}
	return form.SourceARN, form.SourceARN != "" && form.TaskID != ""
}

// addTask adds t unless another task of its source is running.
func (s *Server) addTask(t *moveTask) error {
	s.starting.Lock()
	defer s.starting.Unlock()
	for _, other := range s.runTasks() {
		if other.source == t.source && other.running() {
			return invalidParameterValue.because("There is already a task running. Only one active task is allowed for a source queue arn at a given time.")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks = append(newestTasks(s.tasks, t.source), t)
	return nil
}

// newestTasks returns a copy of tasks. It drops the oldest tasks of the source, so that fewer
// than maxListedTasks remain and the caller can add a task. A running task always stays,
// because only the newest task of a source can be running.
func newestTasks(tasks []*moveTask, source *Queue) []*moveTask {
	remaining := 0
	for _, t := range tasks {
		if t.source == source {
			remaining++
		}
	}
	return slices.DeleteFunc(slices.Clone(tasks), func(t *moveTask) bool {
		if t.source != source || remaining < maxListedTasks {
			return false
		}
		remaining--
		return true
	})
}

func (s *Server) runTasks() []*moveTask {
	s.mu.RLock()
	tasks := s.tasks[:len(s.tasks):len(s.tasks)]
	s.mu.RUnlock()
	for _, t := range tasks {
		t.run()
	}
	return tasks
}

func (s *Server) listMoves(ctx context.Context, in *sqs.ListMessageMoveTasksInput) (*sqs.ListMessageMoveTasksOutput, error) {
	if in.SourceArn == nil {
		return nil, missing("SourceArn")
	}
	limit := 1
	if in.MaxResults != nil {
		limit = int(*in.MaxResults)
	}
	if limit < 1 || limit > maxListedTasks {
		return nil, invalidValue(limit, "MaxResults", "Must be between 1 and 10, if provided.")
	}
	source := s.byARN(*in.SourceArn)
	if source == nil {
		return nil, resourceNotFound.because("The resource that you specified for the SourceArn parameter doesn't exist.")
	}
	out := &sqs.ListMessageMoveTasksOutput{}
	tasks := s.runTasks()
	for i := len(tasks) - 1; i >= 0 && len(out.Results) < limit; i-- {
		if tasks[i].source == source {
			out.Results = append(out.Results, tasks[i].entry(callerOf(ctx).region))
		}
	}
	return out, nil
}

func (s *Server) cancelMove(_ context.Context, in *sqs.CancelMessageMoveTaskInput) (*sqs.CancelMessageMoveTaskOutput, error) {
	if in.TaskHandle == nil {
		return nil, missing("TaskHandle")
	}
	source, ok := sourceOfTask(*in.TaskHandle)
	switch { // AWS's texts for a bad handle (F-142)
	case !ok:
		return nil, invalidParameterValue.because("Value for parameter TaskHandle is invalid.")
	case s.byARN(source) == nil:
		return nil, resourceNotFound.because("The resource that you specified for the SourceArn parameter doesn't exist.")
	}
	for _, t := range s.runTasks() {
		if t.handle != *in.TaskHandle {
			continue
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.status != taskRunning {
			return nil, unsupportedOperation.because("Only active tasks can be cancelled.")
		}
		t.status = taskCancelled
		return &sqs.CancelMessageMoveTaskOutput{ApproximateNumberOfMessagesMoved: int64(t.moved)}, nil
	}
	return nil, resourceNotFound.because("Task does not exist.")
}
