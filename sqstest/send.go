package sqstest

// Deviations from AWS in this file:
//   - Sequence numbers are consecutive within a millisecond (F-008); AWS was seen to leave
//     gaps.
//   - The deduplication interval ends exactly 300 s after the accepted send, or after the
//     last duplicate with Config.DuplicateRestartsInterval. AWS's exact end was not
//     recorded (F-019).
//   - After a change of the deduplication scope, a message with an earlier ID can be
//     accepted once more.
//   - A message's attribute AWSTraceHeader overrides the header X-Amzn-Trace-Id. Only
//     requests without the attribute were recorded (F-143).
//   - Of concurrent duplicates, the queue stores the first that it gets. AWS's choice was
//     not recorded.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math/big"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/textview"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// SendMessage stores the message, or suppresses it as a duplicate and returns the
// original's answer (F-001). A call uses up the next injected fault (see [Queue.Inject])
// even if the message is invalid.
func (q *Queue) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return inProcess(ctx, "SendMessage", in, func(ctx context.Context, in *sqs.SendMessageInput) (*sqs.SendMessageOutput, error) {
		return q.send(ctx, &sendRequest{SendMessageInput: *in, DelaySeconds: unlessZero(in.DelaySeconds)})
	})
}

// SendMessageBatch sends up to ten entries in order. An invalid request is refused as a
// whole, and no entry is stored.
//
// Entries with invalid contents are listed in Failed and do not affect the others, unless
// Config.ContentsRefuseBatch is set.
//
// A call uses up the next injected fault (see [Queue.Inject]) even with an invalid entry.
func (q *Queue) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return inProcess(ctx, "SendMessageBatch", in, func(ctx context.Context, in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
		request := &sendBatchRequest{SendMessageBatchInput: *in}
		for _, e := range in.Entries {
			request.Entries = append(request.Entries, sendEntry{e, unlessZero(e.DelaySeconds)})
		}
		return q.sendBatch(ctx, request)
	})
}

// sendRequest, sendBatchRequest and sendEntry are inputs with a pointer for DelaySeconds,
// because zero differs from absent: zero overrides a standard queue's delay. The SDK's
// inputs cannot express the difference.
type sendRequest struct {
	sqs.SendMessageInput
	DelaySeconds *int32
}

type sendBatchRequest struct {
	sqs.SendMessageBatchInput
	Entries []sendEntry
}

type sendEntry struct {
	types.SendMessageBatchRequestEntry
	DelaySeconds *int32
}

func (q *Queue) send(ctx context.Context, in *sendRequest) (*sqs.SendMessageOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	return faulty(ctx, q, ActionSend, func(fault Fault) (*sqs.SendMessageOutput, error) {
		return q.sendOne(ctx, fault, sendEntry{types.SendMessageBatchRequestEntry{
			MessageBody:             in.MessageBody,
			DelaySeconds:            aws.ToInt32(in.DelaySeconds),
			MessageAttributes:       in.MessageAttributes,
			MessageDeduplicationId:  in.MessageDeduplicationId,
			MessageGroupId:          in.MessageGroupId,
			MessageSystemAttributes: in.MessageSystemAttributes,
		}, in.DelaySeconds})
	})
}

func (q *Queue) sendOne(ctx context.Context, fault Fault, e sendEntry) (*sqs.SendMessageOutput, error) {
	set := q.settings.Load()
	if err := set.validateSend(e); err != nil {
		return nil, err
	}
	if err := fault.entryError(0, e.SendMessageBatchRequestEntry); err != nil {
		return nil, err
	}
	p := prepare(set, e, callerOf(ctx).trace)
	m, err := withRoom(q, func() (*message, error) { return q.accept(q.now(), set, p) })
	if err != nil {
		return nil, err
	}
	// For a duplicate, m is the original. The digests are of this request (F-001, F-002).
	return &sqs.SendMessageOutput{
		MD5OfMessageAttributes:       p.attributesMD5,
		MD5OfMessageBody:             aws.String(p.bodyMD5),
		MD5OfMessageSystemAttributes: p.systemMD5,
		MessageId:                    aws.String(m.MessageID),
		SequenceNumber:               m.shownSequence(),
	}, nil
}

func (q *Queue) sendBatch(ctx context.Context, in *sendBatchRequest) (*sqs.SendMessageBatchOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	return faulty(ctx, q, ActionSend, func(fault Fault) (*sqs.SendMessageBatchOutput, error) {
		return q.sendEntries(ctx, fault, in.Entries)
	})
}

func (q *Queue) sendEntries(ctx context.Context, fault Fault, entries []sendEntry) (*sqs.SendMessageBatchOutput, error) {
	if err := validateEntries("SendMessageBatchRequestEntry", entries, func(e sendEntry) *string { return e.Id }); err != nil {
		return nil, err
	}
	size := 0
	for _, e := range entries {
		size += messageSize(e.SendMessageBatchRequestEntry)
	}
	if size > maxMessageBytes {
		return nil, batchTooLong.because("Batch requests cannot be longer than %d bytes. You have sent %d bytes.", maxMessageBytes, size)
	}
	set := q.settings.Load()
	for _, e := range entries {
		if err := set.validateParameters(e, true); err != nil && set.fifo {
			return nil, err
		}
		if !q.config.ContentsRefuseBatch {
			continue
		}
		if err := set.validateContents(e.SendMessageBatchRequestEntry, true); err != nil {
			return nil, err
		}
	}

	out := &sqs.SendMessageBatchOutput{}
	var sends []outgoing
	for i, e := range entries {
		err := set.validateParameters(e, true)
		if err == nil {
			err = set.validateContents(e.SendMessageBatchRequestEntry, true)
		}
		if err == nil {
			err = fault.entryError(i, e.SendMessageBatchRequestEntry)
		}
		if err != nil {
			out.Failed = append(out.Failed, err.entry(e.Id))
			continue
		}
		sends = append(sends, prepare(set, e, callerOf(ctx).trace))
	}

	accepted, err := withRoom(q, func() ([]*message, error) { return q.acceptAll(set, sends) })
	if err != nil {
		return nil, err
	}
	for i, p := range sends {
		m := accepted[i]
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{
			Id:                           p.Id,
			MD5OfMessageAttributes:       p.attributesMD5,
			MD5OfMessageBody:             aws.String(p.bodyMD5),
			MD5OfMessageSystemAttributes: p.systemMD5,
			MessageId:                    aws.String(m.MessageID),
			SequenceNumber:               m.shownSequence(),
		})
	}
	return out, nil
}

// acceptAll calls accept for all entries of a batch, or for none: the MemoryLimits apply to the
// whole batch, including duplicates. The entries share the millisecond and get consecutive
// numbers (F-043). The caller holds q.mu.
func (q *Queue) acceptAll(set *settings, sends []outgoing) ([]*message, error) {
	total := int64(0)
	for _, p := range sends {
		total += p.size()
	}
	if err := q.refuseBeyondBounds(int64(len(sends)), total); err != nil {
		return nil, err
	}
	now := q.now()
	accepted := make([]*message, len(sends))
	for i, p := range sends {
		p.hasRoom = true
		var err error
		if accepted[i], err = q.accept(now, set, p); err != nil {
			return nil, err
		}
	}
	return accepted, nil
}

// outgoing is a valid entry of a send request, with values computed before the queue is
// locked.
type outgoing struct {
	sendEntry
	id                       string // deduplication ID, or "" in a standard queue
	attributes               map[string]types.MessageAttributeValue
	bodyMD5                  string
	attributesMD5, systemMD5 *string
	trace                    string
	hasRoom                  bool // the bounds of the server were checked for the whole batch
}

// prepare computes a message from an entry. The message has the entry's trace header, or
// else the trace header of the request (F-143). The digest covers only the entry's own
// system attributes.
func prepare(set *settings, e sendEntry, trace string) outgoing {
	p := outgoing{
		sendEntry:     e,
		trace:         trace,
		attributes:    normalised(cloneAttributes(e.MessageAttributes)), // receivers get numbers in another form (F-080)
		bodyMD5:       digest.Body(*e.MessageBody),
		attributesMD5: digest.Attributes(e.MessageAttributes),
		systemMD5:     digest.SystemAttributes(e.MessageSystemAttributes),
	}
	if own := e.MessageSystemAttributes[string(types.MessageSystemAttributeNameForSendsAWSTraceHeader)].StringValue; own != nil {
		p.trace = *own
	}
	if set.fifo {
		p.id = deduplicationID(e)
	}
	return p
}

// deduplicationID returns the explicit ID, or the hash of the body.
func deduplicationID(e sendEntry) string {
	if e.MessageDeduplicationId != nil {
		return *e.MessageDeduplicationId // an explicit ID replaces the hash (F-013)
	}
	// textview.Bytes avoids a copy: the body may be a megabyte.
	sum := sha256.Sum256(textview.Bytes(*e.MessageBody))
	var id [2 * sha256.Size]byte
	hex.Encode(id[:], sum[:])
	return string(id[:]) // the hash of the body alone, without attributes (F-011, F-012)
}

// accept stores the message p unless it is a duplicate. It returns the new message, or the
// original of the duplicate; the sender gets the IDs of this message. The caller holds
// q.mu.
func (q *Queue) accept(now time.Time, set *settings, p outgoing) (*message, error) {
	m := &message{
		Message: Message{
			GroupID:         aws.ToString(p.MessageGroupId),
			DeduplicationID: p.id,
			Body:            *p.MessageBody,
			Attributes:      p.attributes,
			AcceptedAt:      now,
		},
		bodyMD5:     p.bodyMD5,
		traceHeader: p.trace,
		hiddenIndex: notInHeap,
		sentAt:      now,
		agesFrom:    now,
	}
	var key window.Key
	if set.fifo {
		key = q.dedupKey(now, set, m.GroupID, p.id)
		if r, state := q.window.Lookup(now, key); state == window.Inside {
			return q.suppress(now, set, key, r, m.Message, p.MessageDeduplicationId == nil), nil
		}
	}
	if !p.hasRoom {
		if err := q.refuseBeyondBounds(1, m.size()); err != nil {
			return nil, err
		}
	}
	m.MessageID = newMessageID()
	m.sequence = q.nextSequence(now) // a standard queue does not report it (F-040)
	delay := set.delay
	if set.fifo {
		m.SequenceNumber = formatSequence(m.sequence)
		if err := q.window.Put(now, key, window.Record[accepted]{From: now, To: now, Value: m.accepted(set.dedupScope(now))}); err != nil {
			return nil, internalFailure.because("%v", err)
		}
	} else if p.DelaySeconds != nil {
		// In a FIFO queue, a delay of zero in the entry does not override the queue's delay
		// (F-075).
		delay = time.Duration(*p.DelaySeconds) * time.Second
	}
	q.keep(now, m, delay)
	return m, nil
}

func newMessageID() string { return uuid.NewString() } // message IDs are UUIDs (F-044)

// dedupKey returns the window's key for a deduplication ID, in the scope that is in effect
// at now.
func (q *Queue) dedupKey(now time.Time, set *settings, group, id string) window.Key {
	if set.dedupScope(now) == ScopeMessageGroup {
		return q.window.Key(group, id)
	}
	return q.window.Key("", id)
}

// suppress records a suppressed send and returns the original message. r is the window's
// record of the original. The caller holds q.mu.
func (q *Queue) suppress(now time.Time, set *settings, key window.Key, r window.Record[accepted], send Message, contentBased bool) *message {
	original := q.original(r, send)
	if q.config.DuplicateRestartsInterval {
		r.From, r.To = now, now
		// Even a full window accepts a key that it already has.
		_ = q.window.Put(now, key, r)
	}
	q.recordSuppression(Suppression{
		Original:        original.Message,
		GroupID:         send.GroupID,
		Body:            send.Body,
		Attributes:      send.Attributes,
		DeduplicationID: send.DeduplicationID,
		ContentBased:    contentBased,
		Scope:           set.dedupScope(now),
		At:              now,
		Until:           r.To.Add(window.Interval),
	})
	return original
}

// nextSequence returns a new sequence number (F-004, F-008). The caller holds q.mu.
func (q *Queue) nextSequence(now time.Time) uint64 {
	q.lastSeq = max(q.lastSeq+1, uint64(now.UnixMilli())*sequencesPerMilli)
	return q.lastSeq
}

// keep stores a new message. It first calls settle: messages that are due to become
// visible come before the new message (F-140). The caller holds q.mu.
func (q *Queue) keep(now time.Time, m *message, delay time.Duration) {
	q.settle(now)
	q.store(m)
	q.enqueue(m, now, delay, q.settings.Load().fifo)
}

// shownSequence returns the sequence number in the sender's answer, or nil on a
// standard queue (F-040).
func (m *message) shownSequence() *string {
	if m.SequenceNumber == "" {
		return nil
	}
	return aws.String(m.SequenceNumber)
}

// sequencesPerMilli and sequenceBase are the constants in the formula of sequence
// numbers (F-008).
const sequencesPerMilli = 256_000

var sequenceBase = new(big.Int).Lsh(big.NewInt(1), 64)

func formatSequence(n uint64) string {
	return new(big.Int).Add(sequenceBase, new(big.Int).SetUint64(n)).String()
}
