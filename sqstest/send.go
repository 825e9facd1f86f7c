package sqstest

// Deviations from AWS in this file:
//   - Sequence numbers follow the formula of F-008 with n counted through all
//     sends of one millisecond; AWS was seen to leave gaps.
//   - The interval ends exactly 300 s after the accepted send and a duplicate does
//     not restart it. AWS documents "5 minutes"; neither the boundary nor the
//     anchor was recorded (F-019, F-020).
//   - Concurrent duplicates are decided by the order in which they reach the
//     queue; what AWS does with them was not recorded.

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

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// SendMessage stores the message, or swallows it as a duplicate with the answer
// that the original got (F-001). Faults that were injected come first.
func (q *Queue) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return inProcess(ctx, "SendMessage", in, requireSend, q.send)
}

// SendMessageBatch sends up to ten entries in their order. A fault in the
// request refuses it whole before anything is stored; a fault in an entry's
// contents is in Failed and leaves the others alone. Injected faults come first.
func (q *Queue) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return inProcess(ctx, "SendMessageBatch", in, requireSendBatch, q.sendBatch)
}

func (q *Queue) send(_ context.Context, in *sqs.SendMessageInput) (*sqs.SendMessageOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	fault := q.nextFault()
	if fault.early != nil {
		return nil, fault.early
	}
	out, err := q.sendOne(fault, types.SendMessageBatchRequestEntry{
		MessageBody:             in.MessageBody,
		DelaySeconds:            in.DelaySeconds,
		MessageAttributes:       in.MessageAttributes,
		MessageDeduplicationId:  in.MessageDeduplicationId,
		MessageGroupId:          in.MessageGroupId,
		MessageSystemAttributes: in.MessageSystemAttributes,
	})
	if fault.late != nil {
		return nil, fault.late
	}
	return out, err
}

func (q *Queue) sendOne(fault Fault, e types.SendMessageBatchRequestEntry) (*sqs.SendMessageOutput, error) {
	if aws.ToString(e.MessageBody) == "" {
		return nil, missing("MessageBody") // F-071
	}
	if err := q.validateFIFO(e, false); err != nil {
		return nil, err
	}
	if err := q.validateContents(e); err != nil {
		return nil, err
	}
	if err := fault.entry(0, e); err != nil {
		return nil, err
	}
	p := q.prepare(e)
	q.mu.Lock()
	defer q.mu.Unlock()
	m, err := q.accept(q.now(), p)
	if err != nil {
		return nil, err
	}
	// The IDs are the stored message's, the digests this request's (F-001, F-002).
	return &sqs.SendMessageOutput{
		MD5OfMessageAttributes:       p.attributesMD5,
		MD5OfMessageBody:             aws.String(p.bodyMD5),
		MD5OfMessageSystemAttributes: p.systemMD5,
		MessageId:                    aws.String(m.MessageID),
		SequenceNumber:               aws.String(m.SequenceNumber),
	}, nil
}

func (q *Queue) sendBatch(_ context.Context, in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	fault := q.nextFault()
	if fault.early != nil {
		return nil, fault.early
	}
	out, err := q.sendEntries(fault, in.Entries)
	if fault.late != nil {
		return nil, fault.late
	}
	return out, err
}

func (q *Queue) sendEntries(fault Fault, entries []types.SendMessageBatchRequestEntry) (*sqs.SendMessageBatchOutput, error) {
	ids, size := make([]*string, len(entries)), 0
	for i, e := range entries {
		ids[i] = e.Id
		size += messageSize(e)
	}
	if err := validateEntryIDs("SendMessageBatchRequestEntry", ids); err != nil {
		return nil, err
	}
	if size > maxMessageBytes {
		return nil, batchTooLong.because("Batch requests cannot be longer than %d bytes. You have sent %d bytes.", maxMessageBytes, size)
	}
	for _, e := range entries {
		if err := q.validateFIFO(e, true); err != nil {
			return nil, err
		}
	}

	out := &sqs.SendMessageBatchOutput{}
	var sends []outgoing
	for i, e := range entries {
		err := q.validateContents(e)
		if err == nil {
			err = fault.entry(i, e)
		}
		if err != nil {
			out.Failed = append(out.Failed, err.entry(e.Id))
			continue
		}
		sends = append(sends, q.prepare(e))
	}

	// One lock over the batch: its entries share the millisecond and their
	// sequence numbers are consecutive (F-043).
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	for _, p := range sends {
		m, err := q.accept(now, p)
		if err != nil {
			return nil, err
		}
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{
			Id:                           p.Id,
			MD5OfMessageAttributes:       p.attributesMD5,
			MD5OfMessageBody:             aws.String(p.bodyMD5),
			MD5OfMessageSystemAttributes: p.systemMD5,
			MessageId:                    aws.String(m.MessageID),
			SequenceNumber:               aws.String(m.SequenceNumber),
		})
	}
	return out, nil
}

// outgoing is a valid send with everything that can be computed before the
// lock is taken.
type outgoing struct {
	types.SendMessageBatchRequestEntry
	id                       string
	bodyMD5                  string
	attributesMD5, systemMD5 *string
}

func (q *Queue) prepare(e types.SendMessageBatchRequestEntry) outgoing {
	p := outgoing{
		SendMessageBatchRequestEntry: e,
		bodyMD5:                      bodyMD5(*e.MessageBody),
		attributesMD5:                attributesMD5(e.MessageAttributes),
		systemMD5:                    systemAttributesMD5(e.MessageSystemAttributes),
	}
	if e.MessageDeduplicationId != nil {
		p.id = *e.MessageDeduplicationId // F-013
	} else {
		sum := sha256.Sum256([]byte(*e.MessageBody))
		p.id = hex.EncodeToString(sum[:]) // F-011; attributes never take part, F-012
	}
	return p
}

// accept returns the message that the sender is told of: the original of a
// duplicate, else a new one. It needs q.mu.
func (q *Queue) accept(now time.Time, p outgoing) (*message, error) {
	key := window.Key{ID: p.id}
	if q.config.DeduplicationScope == ScopeMessageGroup {
		key.Group = *p.MessageGroupId
	}
	if r, state := q.window.Lookup(now, key); state == window.Inside {
		q.swallows = append(q.swallows, Suppression{
			Original:        r.Value.Message,
			GroupID:         *p.MessageGroupId,
			Body:            *p.MessageBody,
			Attributes:      cloneAttributes(p.MessageAttributes),
			DeduplicationID: p.id,
			ContentBased:    p.MessageDeduplicationId == nil,
			Scope:           q.config.DeduplicationScope,
			At:              now,
			Until:           r.To.Add(window.Interval),
		})
		return r.Value, nil
	}
	m := &message{
		Message: Message{
			MessageID:       uuid.NewString(),
			GroupID:         *p.MessageGroupId,
			DeduplicationID: p.id,
			Body:            *p.MessageBody,
			Attributes:      cloneAttributes(p.MessageAttributes),
			AcceptedAt:      now,
		},
		bodyMD5:     p.bodyMD5,
		traceHeader: aws.ToString(p.MessageSystemAttributes[string(types.MessageSystemAttributeNameForSendsAWSTraceHeader)].StringValue),
		hiddenAt:    notHidden,
		sequence:    max(q.lastSeq+1, uint64(now.UnixMilli())*sequencesPerMilli),
	}
	m.SequenceNumber = formatSequence(m.sequence)
	if err := q.window.Put(now, key, window.Record[*message]{From: now, To: now, Value: m}); err != nil {
		return nil, internalFailure.because("%v", err)
	}
	q.lastSeq = m.sequence
	q.stored = append(q.stored, m)
	q.enqueue(m, now, q.config.Delay)
	return m, nil
}

// sequencesPerMilli and sequenceBase are the constants of F-008.
const sequencesPerMilli = 256_000

var sequenceBase = new(big.Int).Lsh(big.NewInt(1), 64)

func formatSequence(n uint64) string {
	return new(big.Int).Add(sequenceBase, new(big.Int).SetUint64(n)).String()
}
