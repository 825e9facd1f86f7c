// Package quiet has code that is right, or of which nothing is known, in the ways
// in which programs write it. There is no finding, infos included.
package quiet

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"text/template"
	"time"

	"example.com/backoffice"
	"example.com/orders/uuid"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const queue = "https://sqs.us-east-1.amazonaws.com/000000000000/orders.fifo"

type order struct {
	ID    string   `json:"id"`
	Acct  string   `json:"acct"`
	Total int      `json:"total"`
	Items []string `json:"items"`
	next  *order
}

type service struct {
	client *sqs.Client
	window time.Duration
	base   sqs.SendMessageInput
	region string
}

func (s *service) with(ctx context.Context, group, id, body string) {
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: &id})
}

// What functions write into their arguments is no constant.

func (s *service) hexOf(ctx context.Context, group, body string, sum []byte) {
	buf := make([]byte, 16)
	hex.Encode(buf, sum)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: aws.String("ord-" + string(buf))})
}

func (s *service) numbered(ctx context.Context, group, body string, seq uint64) {
	var buf [8]byte
	binary.BigEndian.PutUint64(buf[:], seq)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: aws.String("ord-" + string(buf[:]))})
}

func (s *service) big(ctx context.Context, group, body, id string) {
	n := new(big.Int)
	n.SetString(id, 16)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: aws.String(n.String())})
}

func (s *service) encoded(ctx context.Context, group string, raw []byte) {
	dst := make([]byte, 64)
	base64.StdEncoding.Encode(dst, raw)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: aws.String(string(dst)), MessageGroupId: &group})
}

func (s *service) copied(ctx context.Context, group string, fields map[string]string) {
	payload := map[string]string{"kind": "order"}
	maps.Copy(payload, fields)
	body, _ := json.Marshal(payload)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: aws.String(string(body)), MessageGroupId: &group})
}

func (s *service) query(ctx context.Context, group, id string) {
	v := url.Values{}
	v.Set("id", id)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: aws.String("order?" + v.Encode()), MessageGroupId: &group,
		MessageAttributes: map[string]types.MessageAttributeValue{"event_id": {StringValue: &id}},
	})
}

func (s *service) templated(ctx context.Context, o order, t *template.Template) {
	var b strings.Builder
	_ = t.Execute(&b, o)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: aws.String(b.String()), MessageGroupId: &o.Acct,
		MessageAttributes: map[string]types.MessageAttributeValue{"event_id": {StringValue: &o.ID}},
	})
}

// A counter is another value in each round.

func (s *service) counted(ctx context.Context, group string, bodies []string) {
	for i, b := range bodies {
		s.with(ctx, group, "seed-"+strconv.Itoa(i), b)
		_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: &b, MessageGroupId: &group, MessageDeduplicationId: aws.String("seed-" + strconv.Itoa(i))})
		_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: aws.String(fmt.Sprintf("message %d", i)), MessageGroupId: &group})
	}
}

// A message that is completed elsewhere.

type builder struct{ in sqs.SendMessageInput }

func newBuilder(body string) *builder {
	return &builder{in: sqs.SendMessageInput{QueueUrl: aws.String(queue), MessageBody: &body}}
}

func (b *builder) group(g string) *builder { b.in.MessageGroupId = &g; return b }

func (s *service) defaults(body string) {
	s.base = sqs.SendMessageInput{QueueUrl: aws.String(queue), MessageBody: &body}
}

func entries(orders []order) []types.SendMessageBatchRequestEntry {
	var es []types.SendMessageBatchRequestEntry
	for _, o := range orders {
		body, _ := json.Marshal(o)
		es = append(es, types.SendMessageBatchRequestEntry{Id: aws.String(o.ID), MessageBody: aws.String(string(body))})
	}
	return es
}

func (s *service) batch(ctx context.Context, orders []order) {
	es := entries(orders)
	for i := range es {
		es[i].MessageGroupId = &orders[i].Acct
		es[i].MessageDeduplicationId = &orders[i].ID
	}
	out, _ := s.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(queue), Entries: es})
	_ = out.Failed
}

type fifoClient struct {
	*sqs.Client
	name string
}

func (c *fifoClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	in.MessageGroupId = &c.name
	return c.Client.SendMessage(ctx, in, o...)
}

func (c *fifoClient) decorated(ctx context.Context, body string) {
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(queue), MessageBody: &body})
}

// A delay for standard queues alone.
func (s *service) both(ctx context.Context, url, group, body string, fifo bool) {
	delay := int32(30)
	if fifo {
		delay = 0
	}
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, MessageGroupId: &group, DelaySeconds: delay})
}

// A clock that is cut down to a bucket whose length is a setting.
func (s *service) bucketed(ctx context.Context, group, body string, epoch time.Time) {
	s.with(ctx, group, fmt.Sprint(group, time.Now().Unix()/int64(s.window.Seconds())), body)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: &group,
		MessageDeduplicationId: aws.String(group + strconv.FormatInt(time.Now().Unix()/int64(s.window.Seconds()), 10)),
	})
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: &group,
		MessageDeduplicationId: aws.String(group + strconv.Itoa(int(time.Since(epoch)/(5*time.Minute)))),
	})
}

// A function that looks like aws.String and looks something up.
func (s *service) lookedUp(ctx context.Context, group, body string) {
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: backoffice.Lookup("run id")})
}

// Each entry of a map is a message of its own: their order is not in a body.
func (s *service) perEntry(ctx context.Context, orders map[string]order) {
	for _, o := range orders {
		body, _ := json.Marshal(o)
		_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: aws.String(string(body)), MessageGroupId: &o.Acct})
	}
}

// A sum and a maximum have no order, and what was sorted has its own.
func (s *service) totals(ctx context.Context, group string, counts map[string]int) {
	sum, most := 0, 0
	var names []string
	for name, n := range counts {
		sum += n
		most = max(most, n)
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool { return names[i] < names[j] })
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: aws.String(fmt.Sprint(sum)), MessageGroupId: &group})
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: aws.String(fmt.Sprint(most)), MessageGroupId: &group})
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: aws.String(strings.Join(names, " ")), MessageGroupId: &group})
}

// What is written after the message went out is not in it.
func (s *service) marked(ctx context.Context, o *receipt) error {
	body, _ := json.Marshal(o)
	_, err := s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: aws.String(string(body)), MessageGroupId: &o.Acct})
	if err != nil {
		return err
	}
	o.SentAt = time.Now()
	return nil
}

func (s *service) markedLocal(ctx context.Context, id, acct string) receipt {
	r := receipt{ID: id, Acct: acct}
	body, _ := json.Marshal(r)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: aws.String(string(body)), MessageGroupId: &acct})
	r.SentAt = time.Now()
	return r
}

type receipt struct {
	ID, Acct string
	SentAt   time.Time
}

// The date and the hour make an hourly bucket.
func (s *service) hourly(ctx context.Context, group, body string) {
	now := time.Now().UTC()
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: &group,
		MessageDeduplicationId: aws.String(fmt.Sprintf("%s-%s-%d", group, now.Format("2006-01-02"), now.Hour())),
	})
}

// A routing attribute that is made from the body, or the same for all messages.
func (s *service) routed(ctx context.Context, o order) {
	body, _ := json.Marshal(o)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: aws.String(string(body)), MessageGroupId: &o.Acct,
		MessageAttributes: map[string]types.MessageAttributeValue{
			"high_value": {StringValue: aws.String(strconv.FormatBool(o.Total > 1000))},
			"region":     {StringValue: &s.region},
		},
	})
}

// What the linker sets is no constant.
var buildVersion = "dev"

func (s *service) deployed(ctx context.Context, group, body string) {
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: aws.String("deploy-" + buildVersion)})
}

// Parts of one value are not one value.
func (s *service) parts(ctx context.Context, body, scene string, row []string, o *order) {
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: &body, MessageGroupId: aws.String(row[0]), MessageDeduplicationId: aws.String(row[1])})
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: &body, MessageGroupId: aws.String(scene[10:16]), MessageDeduplicationId: aws.String(scene)})
	group, id := pair(o)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: &id})
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: &body, MessageGroupId: aws.String(o.take()), MessageDeduplicationId: aws.String(o.take())})
	key := o.Acct
	grouped := &key
	in := &sqs.SendMessageInput{MessageBody: &body, MessageGroupId: aws.String(*grouped)}
	key += o.ID
	in.MessageDeduplicationId = aws.String(*grouped)
	_, _ = s.client.SendMessage(ctx, in)
}

func pair(o *order) (group, id string) { return o.Acct, o.Acct + o.ID }

func (o *order) take() string {
	item := o.Items[0]
	o.Items = o.Items[1:]
	return item
}

// The work that these make is bounded.

func (s *service) mixed(ctx context.Context, body string, h uint64) {
	for range 1 {
		h ^= h >> 33
		h *= 0xff51afd7ed558ccd
		h ^= h << 7
		h *= h + 1
		h ^= h >> 3
		h *= h + 3
		h ^= h >> 5
		h *= h + 5
		h ^= h >> 7
		h *= h + 7
		h ^= h >> 9
		h *= h + 9
		h ^= h >> 11
		h *= h + 11
		h ^= h >> 13
		h *= h + 13
		h ^= h >> 15
		h *= h + 15
		h ^= h >> 17
		h *= h + 17
		h ^= h >> 19
		h *= h + 19
		h ^= h >> 21
		h *= h + 21
		h ^= h >> 23
		h *= h + 23
	}
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: aws.String(strconv.FormatUint(h, 16)), MessageDeduplicationId: aws.String(strconv.FormatUint(h+1, 16)),
	})
}

type ring struct {
	next, prev *ring
	order      *order
}

func (r *ring) Init() *ring {
	r.next, r.prev = r, r
	return r
}

func (r *ring) Step() *ring {
	if r.next == nil {
		return r.Init()
	}
	return r.next
}

func (r *ring) Back() *ring {
	if r.next == nil {
		return r.Init()
	}
	return r.prev
}

func (r *ring) Move(n int) *ring {
	if r.next == nil {
		return r.Init()
	}
	for ; n < 0; n++ {
		r = r.prev
	}
	for ; n > 0; n-- {
		r = r.next
	}
	return r
}

func RingOf(n int) *ring {
	if n <= 0 {
		return nil
	}
	r := new(ring)
	p := r
	for i := 1; i < n; i++ {
		p.next = &ring{prev: p}
		p = p.next
	}
	p.next, r.prev = r, p
	return r
}

func (r *ring) Link(s *ring) *ring {
	n := r.Step()
	if s != nil {
		p := s.Back()
		r.next, s.prev, n.prev, p.next = s, r, p, n
	}
	return n
}

func (r *ring) Unlink(n int) *ring {
	if n <= 0 {
		return nil
	}
	return r.Link(r.Move(n + 1))
}

func (s *service) ringed(ctx context.Context, r *ring) {
	r.Link(RingOf(3)).Unlink(1)
	o := r.Move(2).order
	body, _ := json.Marshal(o)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: aws.String(string(body)), MessageGroupId: &o.Acct, MessageDeduplicationId: &r.Unlink(3).Step().order.ID})
}

func (s *service) listed(ctx context.Context, head *order) {
	for o := head; o != nil; o = o.next {
		body, _ := json.Marshal(o)
		_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: aws.String(string(body)), MessageGroupId: &o.Acct, MessageDeduplicationId: &o.ID})
	}
}

// One constant of a table is not one constant.

var bodies = map[string]string{"east": `{"refresh":"east"}`, "west": `{"refresh":"west"}`}

func (s *service) refreshed(ctx context.Context, group string, at int) {
	for _, region := range []string{"east", "west"} {
		_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: aws.String("refresh:" + region), MessageGroupId: &group})
		_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: aws.String(bodies[region]), MessageGroupId: &group})
		_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: aws.String("all"), MessageGroupId: &group, MessageDeduplicationId: aws.String("refresh-" + region)})
	}
	steps := [...]string{"begin", "end"}
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: aws.String(steps[at]), MessageGroupId: &group, MessageDeduplicationId: aws.String(steps[at])})
	for region, body := range map[string]string{"east": "e", "west": "w"} {
		_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: &body, MessageGroupId: &region})
	}
}

// What is sorted by a function that looks at it through the variable.

func (s *service) sortedInPlace(ctx context.Context, group string, tags map[string]bool) {
	o := &order{ID: "x"}
	for tag := range tags {
		o.Items = append(o.Items, tag)
	}
	sort.Slice(o.Items, func(i, j int) bool { return o.Items[i] < o.Items[j] })
	body, _ := json.Marshal(o)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: aws.String(string(body)), MessageGroupId: &group})

	var v order
	for tag := range tags {
		v.Items = append(v.Items, tag)
	}
	sort.Slice(v.Items, func(i, j int) bool { return v.Items[i] < v.Items[j] })
	body, _ = json.Marshal(&v)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: aws.String(string(body)), MessageGroupId: &group})
}

type page struct{ order order }

func (s *service) sortedWithin(ctx context.Context, group string, tags map[string]bool) {
	var p page
	for tag := range tags {
		p.order.Items = append(p.order.Items, tag)
	}
	sort.Slice(p.order.Items, func(i, j int) bool { return p.order.Items[i] < p.order.Items[j] })
	body, _ := json.Marshal(&p.order)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: aws.String(string(body)), MessageGroupId: &group})
}

// A package that is called like a generator and derives.

func (s *service) derived(ctx context.Context, group, body, number string) {
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: aws.String(uuid.New(uuid.Order{Account: group, Number: number})),
	})
}

// What another function of package slices gets before it is sorted.

func (s *service) sortedLater(ctx context.Context, group string, tags map[string]bool) {
	var names []string
	for tag := range tags {
		names = append(names, tag)
	}
	if slices.Contains(names, "draft") {
		return
	}
	slices.Sort(names)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: aws.String(strings.Join(names, " ")), MessageGroupId: &group})
}
