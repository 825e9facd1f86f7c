// Package ids has call sites that differ in what their IDs and groups are made of. // want package:"reach"
package ids

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"hash/maphash"
	mathrand "math/rand/v2"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"

	"example.com/sites/keys/guid"
	"example.com/sites/mail"
)

const visits = "https://sqs.eu-north-1.amazonaws.com/42/visits.fifo"

type visit struct {
	ID     string    `json:"id"`
	Museum string    `json:"museum"`
	Seq    int64     `json:"seq"`
	At     time.Time `json:"at"`
}

type museum struct {
	client *sqs.Client
	office *mail.Office
	newID  func() string
	nextID func() string
}

// newMuseum gives one of the generators a function of nothing that is random.
func newMuseum(c *sqs.Client, v visit, nextID func() string) *museum {
	return &museum{client: c, newID: func() string { return "visit-" + v.ID }, nextID: nextID}
}

func (m *museum) send(ctx context.Context, v visit, group, dedup string) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = m.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(visits), MessageBody: aws.String(string(text)), MessageGroupId: &group, MessageDeduplicationId: &dedup,
	})
	return err
}

// site ID of the event: right
func (m *museum) ofEvent(ctx context.Context, v visit) error { return m.send(ctx, v, v.Museum, v.ID) }

// site fresh UUID: wrong SF002
func (m *museum) fresh(ctx context.Context, v visit) error {
	return m.send(ctx, v, v.Museum, uuid.NewString()) // want `SF002: .*MessageDeduplicationId`
}

// site nanoseconds: wrong SF002
func (m *museum) nanoseconds(ctx context.Context, v visit) error {
	return m.send(ctx, v, v.Museum, v.ID+strconv.FormatInt(time.Now().UnixNano(), 36)) // want `SF002`
}

// site random bytes: wrong SF002
func (m *museum) randomBytes(ctx context.Context, v visit) error {
	var b [12]byte
	if _, err := rand.Read(b[:]); err != nil {
		return err
	}
	return m.send(ctx, v, v.Museum, hex.EncodeToString(b[:])) // want `SF002`
}

var seed = maphash.MakeSeed()

// site hash with a seed of the process: wrong SF002
func (m *museum) seeded(ctx context.Context, v visit) error {
	return m.send(ctx, v, v.Museum, strconv.FormatUint(maphash.String(seed, v.ID), 16)) // want `SF002: MessageDeduplicationId \(through ids\.museum\.send\) is maphash\.String, one value for a process`
}

// site hash object with a seed of the process: wrong SF002
func (m *museum) seededObject(ctx context.Context, v visit) error {
	var h maphash.Hash
	_, _ = h.WriteString(v.ID)
	return m.send(ctx, v, v.Museum, strconv.FormatUint(h.Sum64(), 16)) // want `SF002: MessageDeduplicationId \(through ids\.museum\.send\) is maphash\.Hash\.Sum64, one value for a process`
}

// site hash without a seed: right
func (m *museum) hashed(ctx context.Context, v visit) error {
	h := fnv.New64a()
	_, _ = h.Write([]byte(v.ID))
	return m.send(ctx, v, v.Museum, strconv.FormatUint(h.Sum64(), 16))
}

// site package that derives: right
func (m *museum) derives(ctx context.Context, v visit) error {
	return m.send(ctx, v, v.Museum, guid.NewFor(v.Seq))
}

// site package that derives from two: right
func (m *museum) derivesOfTwo(ctx context.Context, v visit) error {
	return m.send(ctx, v, v.Museum, guid.NewOf('v', uint64(v.Seq)))
}

// site generator that is a function of the event: right
func (m *museum) ownGenerator(ctx context.Context, v visit) error {
	return m.send(ctx, v, v.Museum, m.newID())
}

// site generator that is given: wrong SF002
func (m *museum) givenGenerator(ctx context.Context, v visit) error {
	return m.send(ctx, v, v.Museum, m.nextID()) // want `SF002: .* comes from nextID`
}

// site literal that is called like a generator: right
func (m *museum) literalGenerator(ctx context.Context, v visit) error {
	newID := func() string { return v.ID + ":" + v.Museum }
	return m.send(ctx, v, v.Museum, newID())
}

// site date: right
func (m *museum) daily(ctx context.Context, v visit) error {
	return m.send(ctx, v, v.Museum, v.Museum+time.Now().Format("2006-01-02"))
}

// site minute: wrong SF002
func (m *museum) minute(ctx context.Context, v visit) error {
	return m.send(ctx, v, v.Museum, fmt.Sprint(v.ID, time.Now().Minute())) // want `SF002: warning`
}

// site fallback: wrong SF002
func (m *museum) fallback(ctx context.Context, v visit, dedup string) error {
	if dedup == "" {
		dedup = uuid.NewString()
	}
	text, _ := json.Marshal(v)
	_, err := m.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(visits), MessageBody: aws.String(string(text)), MessageGroupId: &v.Museum,
		MessageDeduplicationId: aws.String(dedup), // want `SF002: warning: .* falls back to`
	})
	return err
}

// site ID through a wrapper elsewhere: wrong SF002
func (m *museum) elsewhere(ctx context.Context, v visit) error {
	return m.office.Sealed(ctx, v.Museum, v.ID, uuid.NewString()) // want `SF002: MessageDeduplicationId \(through mail.Office.Sealed\)`
}

// site constant: wrong SF003
func (m *museum) constant(ctx context.Context, v visit) error {
	return m.send(ctx, v, v.Museum, "visits") // want `SF003`
}

// site constant by way of a helper: wrong SF003
func (m *museum) constantHelper(ctx context.Context, v visit) error {
	return m.office.Sealed(ctx, v.Museum, v.ID, kindOf()) // want `SF003`
}

func kindOf() string { return "visit" }

// site constant that is too long: wrong SF010
func (m *museum) tooLong(ctx context.Context, v visit) error {
	text, _ := json.Marshal(v)
	_, err := m.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(visits), MessageBody: aws.String(string(text)), MessageGroupId: &v.Museum,
		MessageDeduplicationId: aws.String("a visit"), // want `SF010: .*"a visit" has a character at byte 1`
	})
	return err
}

// site body as ID: wrong SF010
func (m *museum) bodyAsID(ctx context.Context, v visit) error {
	text, _ := json.Marshal(v)
	_, err := m.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(visits), MessageBody: aws.String(string(text)), MessageGroupId: &v.Museum,
		MessageDeduplicationId: aws.String(string(text)), // want `SF010: MessageDeduplicationId is the whole body`
	})
	return err
}

// site body parameter as ID: wrong SF010
func (m *museum) parameterAsID(ctx context.Context, group, body string) error {
	_, err := m.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(visits), MessageBody: aws.String(body), MessageGroupId: &group,
		MessageDeduplicationId: aws.String(body), // want `SF010: warning: MessageDeduplicationId is the whole body`
	})
	return err
}

// site ID as body: right
func (m *museum) idAsBody(ctx context.Context, v visit) error {
	_, err := m.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(visits), MessageBody: &v.ID, MessageGroupId: &v.Museum, MessageDeduplicationId: &v.ID,
	})
	return err
}

// site hash of the body: right
func (m *museum) hashOfBody(ctx context.Context, v visit) error {
	text, _ := json.Marshal(v)
	sum := sha256.Sum256(text)
	_, err := m.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(visits), MessageBody: aws.String(string(text)), MessageGroupId: &v.Museum,
		MessageDeduplicationId: aws.String(hex.EncodeToString(sum[:])),
	})
	return err
}

func lookup(ctx context.Context, name string) string {
	s, _ := ctx.Value(name).(string)
	return s
}

// site one variable for group and ID: wrong SF005
func (m *museum) oneVariable(ctx context.Context, v visit) error {
	owner := lookup(ctx, v.Museum)
	text, _ := json.Marshal(v)
	_, err := m.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(visits), MessageBody: aws.String(string(text)), MessageGroupId: &owner,
		MessageDeduplicationId: &owner, // want `SF005: MessageDeduplicationId is the group ID`
	})
	return err
}

// site element of a map for group and ID: wrong SF005
func (m *museum) oneElement(ctx context.Context, v visit, owners map[string]string) error {
	owner := owners[v.Museum]
	text, _ := json.Marshal(v)
	_, err := m.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(visits), MessageBody: aws.String(string(text)), MessageGroupId: aws.String(owner),
		MessageDeduplicationId: aws.String(owner), // want `SF005`
	})
	return err
}

// site group with more than the entity: right
func (m *museum) moreThanEntity(ctx context.Context, v visit) error {
	return m.send(ctx, v, v.Museum, v.Museum+":"+strconv.FormatInt(v.Seq, 10))
}

// site random group: wrong SF007
func (m *museum) randomGroup(ctx context.Context, v visit) error {
	return m.send(ctx, v, uuid.NewString(), v.ID) // want `SF007`
}

// site group with a time: wrong SF007
func (m *museum) timedGroup(ctx context.Context, v visit) error {
	return m.send(ctx, v, fmt.Sprintf("%s-%d", v.Museum, time.Now().UnixMilli()), v.ID) // want `SF007`
}

// site one group for all of a call: right
func (m *museum) session(ctx context.Context, all []visit) error {
	tour := uuid.NewString()
	for _, v := range all {
		if err := m.send(ctx, v, tour, v.ID); err != nil {
			return err
		}
	}
	return nil
}

// site one group for a batch: right
func (m *museum) sessionBatch(ctx context.Context, all []visit) error {
	tour := uuid.NewString()
	entries := make([]types.SendMessageBatchRequestEntry, 0, len(all))
	for i, v := range all {
		entries = append(entries, types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), MessageBody: &v.ID, MessageGroupId: &tour, MessageDeduplicationId: &v.ID,
		})
	}
	out, err := m.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(visits), Entries: entries})
	_ = out.Failed
	return err
}

// site one group for two messages: right
func (m *museum) sessionOfTwo(ctx context.Context, arrive, leave visit) error {
	tour := uuid.NewString()
	if err := m.send(ctx, arrive, tour, arrive.ID); err != nil {
		return err
	}
	return m.send(ctx, leave, tour, leave.ID)
}

func (m *museum) sendAll(ctx context.Context, group string, all []visit) error {
	for _, v := range all {
		if err := m.send(ctx, v, group, v.ID); err != nil {
			return err
		}
	}
	return nil
}

// site one group for a call that sends all: right
func (m *museum) sessionOfCall(ctx context.Context, all []visit) error {
	return m.sendAll(ctx, uuid.NewString(), all)
}

// site one of a fixed set of groups: right
func (m *museum) shard(ctx context.Context, v visit) error {
	return m.send(ctx, v, fmt.Sprintf("shard-%d", mathrand.IntN(16)), v.ID)
}

// site one group of a table: right
func (m *museum) tableOfGroups(ctx context.Context, v visit) error {
	halls := []string{"north", "south"}
	return m.send(ctx, v, halls[mathrand.IntN(len(halls))], v.ID)
}

// site group by remainder: right
func (m *museum) remainder(ctx context.Context, v visit) error {
	return m.send(ctx, v, strconv.FormatInt(time.Now().UnixNano()%8, 10), v.ID)
}

// site group of the day: right
func (m *museum) groupOfDay(ctx context.Context, v visit) error {
	return m.send(ctx, v, v.Museum+time.Now().Format("2006-01-02"), v.ID)
}

func ticket() string { return fmt.Sprintf("%016x", mathrand.Uint64()) }

// site one generator for group and ID: wrong SF002
func (m *museum) oneGenerator(ctx context.Context, v visit) error {
	return m.send(ctx, v, ticket(), ticket()) // want `SF002: .*`
}

// site clock in the body: wrong SF012
func (m *museum) clockInBody(ctx context.Context, v visit) error {
	v.At = time.Now()
	text, _ := json.Marshal(v)
	_, err := m.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(visits), MessageGroupId: &v.Museum,
		MessageBody: aws.String(string(text)), // want `SF012`
	})
	return err
}

// site clock in the body beside an ID: right
func (m *museum) clockBesideID(ctx context.Context, v visit) error {
	v.At = time.Now()
	return m.send(ctx, v, v.Museum, v.ID)
}

// site order of a map in the body: wrong SF012
func (m *museum) mapInBody(ctx context.Context, tags map[string]string) error {
	text := ""
	for name, tag := range tags {
		text += name + "=" + tag
	}
	_, err := m.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(visits), MessageGroupId: aws.String("tags"),
		MessageBody: &text, // want `SF012`
	})
	return err
}
